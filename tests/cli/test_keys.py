from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc.cli.main import main
from svc.store.database import Database
from svc.store.keys import ApiKey, ApiKeys

ID, TEXT = re.compile(r"^id: +(key_\w+)$", re.M), re.compile(r"^key: (svc_[\w-]{43})$", re.M)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "svc.db"


def svc(*arguments: str | Path, **environ: str) -> Result:
    variables = {"SVC_DB": None, **environ}
    return CliRunner().invoke(main, ["keys", *map(str, arguments)], env=variables)


def create(db: Path, name: str, *options: str) -> tuple[str, str]:
    """The id and the text of a new key."""
    made = svc("create", "--name", name, *options, "--db", db)
    assert made.exit_code == 0, made.output
    key_id, text = ID.search(made.stdout), TEXT.search(made.stdout)
    assert key_id and text
    return key_id[1], text[1]


def stored(db: Path) -> list[ApiKey]:
    database = Database.open(db)
    keys = ApiKeys(database).all()
    database.close()
    return keys


def error(result: Result) -> str:
    """The one line of an error."""
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


def test_a_key_is_made_with_the_default_rate_for_every_project(db: Path) -> None:
    key_id, _ = create(db, "ada")
    (key,) = stored(db)
    assert (key.id, key.name, key.rpm, key.project) == (key_id, "ada", 600, None)


def test_a_key_is_made_with_a_rate_and_a_project(db: Path) -> None:
    create(db, "Ada Lovelace, 2nd floor", "--rpm", "1000000", "--project", "shop")
    (key,) = stored(db)
    assert (key.name, key.rpm, key.project) == ("Ada Lovelace, 2nd floor", 1_000_000, "shop")


def test_the_list_is_a_table_that_shows_no_key(db: Path) -> None:
    one, text = create(db, "ada", "--rpm", "60", "--project", "shop", "--concurrency", "5")
    other, _ = create(db, "bob")
    assert svc("revoke", other, "--db", db).exit_code == 0
    listed = svc("list", "--db", db)
    head, first, second = listed.stdout.splitlines()
    assert head.split() == ["id", "name", "rpm", "at", "once", "project", "created", "state"]
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.fullmatch(rf"{one}  ada    60        5  shop     {moment}  active", first)
    assert re.fullmatch(
        rf"{other}  bob   600        -  -        {moment}  revoked {moment}", second
    )
    assert text not in listed.output and "svc_" not in listed.output


def test_the_list_of_a_database_without_keys_is_its_head(db: Path) -> None:
    Database.open(db).close()
    assert svc("list", "--db", db).stdout.split()[0] == "id"


def test_the_database_is_by_default_the_servers(db: Path) -> None:
    assert svc("create", "--name", "ada", SVC_DB=str(db)).exit_code == 0
    assert "ada" in svc("list", SVC_DB=str(db)).stdout
    assert "'svc.db'" in error(svc("list", SVC_DB=""))


def test_a_key_that_is_revoked_says_so_also_the_second_time(db: Path) -> None:
    key_id, _ = create(db, "ada")
    for _ in range(2):
        assert svc("revoke", key_id, "--db", db).output == f"{key_id} is revoked\n"


def test_a_name_that_is_taken_is_refused_also_of_a_revoked_key(db: Path) -> None:
    key_id, _ = create(db, "ada")
    assert "'ada' is taken" in error(svc("create", "--name", "ada", "--db", db))
    svc("revoke", key_id, "--db", db)
    assert "revoked" in error(svc("create", "--name", "ada", "--db", db))
    assert len(stored(db)) == 1


@pytest.mark.parametrize("rpm", ["0", "-1", "1000001", "99999999999999999999999"])
def test_a_rate_out_of_range_is_refused(db: Path, rpm: str) -> None:
    line = error(svc("create", "--name", "ada", "--rpm", rpm, "--db", db))
    assert "--rpm" in line and "from 1 to 1000000" in line
    assert not db.exists()


@pytest.mark.parametrize("option", ["--name", "--project"])
@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a\nb", "\x1b[31m", "x" * 201, "\udcff"])
def test_a_name_that_would_not_fit_in_a_table_is_refused(db: Path, option: str, name: str) -> None:
    given = {"--name": "ada", "--project": "shop", option: name}
    arguments = [word for pair in given.items() for word in pair]
    line = error(svc("create", *arguments, "--db", db))
    assert option in line and "printable" in line
    assert not db.exists()


@pytest.mark.parametrize("key_id", ["key_none", "", "%", "ada"])
def test_an_unknown_id_is_refused(db: Path, key_id: str) -> None:
    create(db, "ada")
    assert "no key with the id" in error(svc("revoke", key_id, "--db", db))
    assert stored(db)[0].revoked_at is None


def test_a_key_in_place_of_its_id_is_not_printed(db: Path) -> None:
    _, text = create(db, "ada")
    line = error(svc("revoke", text, "--db", db))
    assert "a key, not its id" in line and text[4:] not in line
    assert stored(db)[0].revoked_at is None


@pytest.mark.parametrize("arguments", [["list"], ["revoke", "key_1"]])
def test_a_database_that_is_not_there_is_named_and_not_made(db: Path, arguments: list[str]) -> None:
    line = error(svc(*arguments, "--db", db))
    assert str(db) in line and "no such file" in line
    assert not db.exists()


@pytest.mark.parametrize("arguments", [["list"], ["create", "--name", "ada"]])
def test_a_file_that_is_no_database_is_refused_and_untouched(
    db: Path, arguments: list[str]
) -> None:
    db.write_text("notes " * 1_000)
    assert "not a SQLite database" in error(svc(*arguments, "--db", db))
    assert db.read_text() == "notes " * 1_000


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    line = error(svc("create", "--name", "ada", "--db", tmp_path / "none" / "svc.db"))
    assert str(tmp_path / "none") in line


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["create"], ["create", "--name", "a", "--rpm", "many"], ["revoke"]],
)
def test_a_usage_error_ends_with_2_and_without_a_traceback(arguments: list[str]) -> None:
    ended = svc(*arguments)
    assert ended.exit_code == 2
    (line,) = ended.output.splitlines()
    assert line.startswith("Error: ")
    assert "-h`" in line
