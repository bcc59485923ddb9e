from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc.cli.main import main
from svc.cli.secret_input import SECRET_CHARS
from svc.store.database import Database
from svc.store.project_keys import MASTER_KEY, ProjectKeys
from tests.e2e.serving import ROOT, environment

MASTER, KEY = "correct horse", "sk-or-tungsten"
COMMAND = (sys.executable, "-m", "svc.cli.main", "project-key")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "svc.db"


def svc(*arguments: str | Path, stdin: str | bytes = "", master: str | None = MASTER) -> Result:
    variables = {"SVC_DB": None, MASTER_KEY: master}
    arguments = ("project-key", *arguments)
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin, env=variables)


def stored(db: Path, project: str, master: str = MASTER) -> str | None:
    database = Database.open(db)
    try:
        return ProjectKeys(database, master).get(project)
    finally:
        database.close()


def error(result: Result) -> str:
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert KEY not in line and MASTER not in line
    return line


@pytest.mark.parametrize("stdin", [KEY, f"{KEY}\n", f"  {KEY} \r\n"])
def test_a_key_is_read_from_standard_input_and_not_shown(db: Path, stdin: str) -> None:
    done = svc("set", "shop", "--db", db, stdin=stdin)
    assert done.exit_code == 0
    assert "shop" in done.output and KEY not in done.output
    assert stored(db, "shop") == KEY


def test_a_removed_key_is_gone_and_needs_no_master_key(db: Path) -> None:
    svc("set", "shop", "--db", db, stdin=KEY)
    assert svc("remove", "shop", "--db", db, master=None).exit_code == 0
    assert stored(db, "shop") is None
    assert "no aggregator key" in error(svc("remove", "shop", "--db", db))


@pytest.mark.parametrize("master", [None, ""])
def test_a_missing_master_key_is_named(db: Path, master: str | None) -> None:
    line = error(svc("set", "shop", "--db", db, stdin=KEY, master=master))
    assert "SVC_MASTER_KEY is not set" in line


def test_a_master_key_that_is_not_the_servers_is_refused(db: Path) -> None:
    svc("set", "shop", "--db", db, stdin=KEY)
    line = error(svc("set", "bank", "--db", db, stdin=KEY, master="another horse"))
    assert "SVC_MASTER_KEY is not the one" in line
    assert stored(db, "bank") is None


@pytest.mark.parametrize(
    "stdin",
    ["", "\n", "two words", f"{KEY}\nmore", "kéy", b"\xff\xfe", "k\x00", "x" * (SECRET_CHARS + 3)],
)
def test_what_is_no_key_is_refused(db: Path, stdin: str | bytes) -> None:
    assert "has no key" in error(svc("set", "shop", "--db", db, stdin=stdin))
    assert stored(db, "shop") is None


def test_the_longest_key_is_taken_with_its_line_break(db: Path) -> None:
    svc("set", "shop", "--db", db, stdin="x" * SECRET_CHARS + "\r\n")
    assert stored(db, "shop") == "x" * SECRET_CHARS


@pytest.mark.parametrize("project", ["", " a", "a\nb", "x" * 201])
def test_a_name_that_no_project_has_is_refused(db: Path, project: str) -> None:
    assert "printable" in error(svc("set", project, "--db", db, stdin=KEY))
    assert not db.exists()


def test_removing_from_a_database_that_is_not_there_makes_none(db: Path) -> None:
    assert "no such file" in error(svc("remove", "shop", "--db", db))
    assert not db.exists()


def test_a_closed_standard_input_holds_no_key(db: Path) -> None:
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, "set", "shop", "--db", str(db)],
        cwd=ROOT,
        env=environment(SVC_MASTER_KEY=MASTER),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: standard input has no key")


def test_on_a_terminal_the_key_is_asked_for_and_not_echoed(db: Path) -> None:
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "set", "shop", "--db", str(db)],
        cwd=ROOT,
        env=environment(SVC_MASTER_KEY=MASTER),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        shown = os.read(terminal, 1_000)
        while not shown.endswith(b": "):
            shown += os.read(terminal, 1_000)
        os.write(terminal, f"{KEY}\n".encode())
        assert process.wait(60) == 0
        shown += os.read(terminal, 1_000)
        os.close(terminal)
    assert shown.startswith(b"Aggregator key")
    assert KEY.encode() not in shown
    assert stored(db, "shop") == KEY
