"""`svc hook`: hooks are added, shown and removed, and lead to no private address by accident."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc import limits
from svc.cli.main import main
from svc.store import Database, HookEvents, Hooks

KEYED = {"SVC_MASTER_KEY": "correct horse"}
OWN = "http://127.0.0.1:9/hooks/rosebud?token=rosebud"


def svc(db: Path, *arguments: str, stdin: str = "", **environment: str | None) -> Result:
    runner = CliRunner(env={**KEYED, **environment})
    return runner.invoke(main, ["hook", *arguments, "--db", str(db)], input=stdin)


def added(db: Path, *arguments: str) -> str:
    said = svc(db, "add", OWN, "--project", "shop", "--allow-private", *arguments)
    assert said.exit_code == 0, said.stderr
    return said.stdout


def test_a_hook_is_added_shown_and_removed(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    said = added(db)
    assert re.fullmatch(r"id:     hook_[0-9a-f]{12}\nsecret: whsec_[\w+/]{43}=\n", said)
    hook_id = said.split()[1]
    row = svc(db, "list").stdout.splitlines()[-1].split()
    assert row == [hook_id, "shop", "http://127.0.0.1:9/…", "0", "0", "-", "active", "all"]
    assert svc(db, "remove", hook_id).stdout == f"{hook_id} is removed\n"
    assert svc(db, "remove", hook_id).exit_code == 1
    assert hook_id not in svc(db, "list").stdout


@pytest.mark.parametrize("stdin", [OWN, f" {OWN} \r\n"])
def test_the_url_is_read_from_standard_input_which_no_list_of_processes_shows(
    tmp_path: Path, stdin: str
) -> None:
    db = tmp_path / "svc.db"
    said = svc(db, "add", "-", "--project", "shop", "--allow-private", stdin=stdin)
    assert said.exit_code == 0, said.stderr
    assert "rosebud" not in said.output
    with closing(Database.open(db)) as database:
        hook = Hooks(database, KEYED["SVC_MASTER_KEY"]).opened(1)
    assert hook is not None and hook.url == OWN


@pytest.mark.parametrize(
    ("stdin", "why"),
    [
        ("", "standard input has no URL"),
        ("http://10.0.0.1/rosebud\nhttp://10.0.0.1/", "characters that none may have"),
        ("http://10.0.0.1/rosebud-é", "characters that none may have"),
        (OWN + limits.HOOK_URL_CHARS * "a", "allowed: 2,048"),
    ],
)
def test_standard_input_without_one_url_adds_no_hook(tmp_path: Path, stdin: str, why: str) -> None:
    db = tmp_path / "svc.db"
    said = svc(db, "add", "-", "--project", "shop", "--allow-private", stdin=stdin)
    assert said.exit_code == 1 and why in said.stderr
    assert "rosebud" not in said.output and not db.exists()


def test_a_disabled_hook_is_enabled_with_its_id_and_secret(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    hook_id = added(db).split()[1]
    with closing(Database.open(db)) as database:
        HookEvents(database).disable(1, "its receiver answered 410 Gone")
    assert "410 Gone; `svc hook enable` sends again" in svc(db, "list").stdout
    assert svc(db, "enable", hook_id).stdout == f"{hook_id} is enabled\n"
    assert "410" not in svc(db, "list").stdout and hook_id in svc(db, "list").stdout
    said = svc(db, "enable", "hook_0")
    assert said.exit_code == 1 and "no hook with the id 'hook_0'" in said.stderr


def test_kinds_can_be_chosen(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    added(db, "--event", "drift", "--event", "batch.done")
    (shown,) = json.loads(svc(db, "list", "--json").stdout)
    assert shown["kinds"] == ["batch.done", "drift"]
    assert "batch.done, drift" in svc(db, "list").stdout
    assert svc(db, "add", OWN, "--project", "shop", "--event", "rain").exit_code == 2


def test_neither_secret_nor_path_is_shown_again(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    secret = added(db).split()[-1]
    shown = svc(db, "list").output + svc(db, "list", "--json").output
    assert "rosebud" not in shown and secret not in shown


@pytest.mark.parametrize(
    "url", [OWN, "http://localhost/", "https://10.0.0.1/", "https://169.254.169.254/rosebud"]
)
def test_a_private_address_has_to_be_allowed(tmp_path: Path, url: str) -> None:
    said = svc(tmp_path / "svc.db", "add", url, "--project", "shop")
    assert said.exit_code == 1
    assert "--allow-private" in said.stderr and "rosebud" not in said.stderr
    assert not (tmp_path / "svc.db").exists()


@pytest.mark.parametrize("url", ["example.com", "ftp://example.com/", "https://a:b@example.com/"])
def test_what_is_no_url_for_a_hook_is_refused(tmp_path: Path, url: str) -> None:
    said = svc(tmp_path / "svc.db", "add", url, "--project", "shop", "--allow-private")
    assert said.exit_code == 1 and "the URL" in said.stderr


def test_plain_http_to_another_machine_is_warned_about(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    said = svc(db, "add", "http://10.0.0.1/", "--project", "shop", "--allow-private")
    assert said.exit_code == 0 and "can read what is sent" in said.stderr
    said = svc(db, "add", OWN, "--project", "shop", "--allow-private")
    assert "can read what is sent" not in said.stderr


def test_adding_needs_the_master_key(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    arguments = ("add", OWN, "--project", "shop", "--allow-private")
    said = svc(db, *arguments, SVC_MASTER_KEY=None)
    assert said.exit_code == 1 and "SVC_MASTER_KEY is not set" in said.stderr
    added(db)
    said = svc(db, *arguments, SVC_MASTER_KEY="another horse")
    assert said.exit_code == 1 and "not the one" in said.stderr


def test_a_project_is_named_as_everywhere(tmp_path: Path) -> None:
    said = svc(tmp_path / "svc.db", "add", OWN, "--project", " ", "--allow-private")
    assert said.exit_code == 1 and "--project" in said.stderr


def test_a_project_has_so_many_hooks_at_most(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    for _ in range(limits.HOOKS):
        added(db)
    said = svc(db, "add", OWN, "--project", "shop", "--allow-private")
    assert said.exit_code == 1 and "20 hooks" in said.stderr
