import hashlib
import os
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Barrier

import pytest

from svc.errors import SettingsError
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.labels import Labels
from svc.store.migrations import prepare, shipped
from svc.store.overview import Overview, ProjectOverview
from tests.store.processes import child, lines
from tests.store.records import record

OPENERS, NEW_FILES = 6, 40  # without one view of the file, a fifth of the rounds went wrong
NOTES = """
-- one; with a semicolon in its comment
CREATE TABLE notes (text TEXT);
CREATE TRIGGER tidy AFTER INSERT ON notes BEGIN DELETE FROM notes WHERE text = ';'; END;
INSERT INTO notes VALUES ('a;b');
"""
# The first twelve digits of the SHA-256 of each migration that files out there may have, in order.
# A new one is added at the end. Where one changes, or its place does, such files can be opened no
# more.
OUT_THERE = """
c3c0f7d16b70 dc02ad01594f 6399129487f3 f3c140245e89 0f1c833cce05 963fd39b0fd5 b13b54288d6a
ec299ca77970 98fbc348a02e 327676f3bfee bd9fdb857d8b 083ae10c2f10 14460a278c06 3040f0c31e02
17ef7f5aee73 c5b80d2451ae 8bb9f2022e68 39c02b68233b 4c27d06b8167 2e8da752965e 295d49b26b3d
35aaa58e8021 7b08f0910279 e3b0c44298fc 8a585f38e93a f5d431ef9cba a5beb5b7dbc6 37bd631aac1a
29d2bb18aec3 5fb8e78ff483 ae566d17db60 7b23fdba3611
"""


def refused(path, **options) -> str:
    with pytest.raises(SettingsError) as error:
        Database.open(path, **options)
    return error.value.message


def make(path, statements):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)


def version(path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def test_migrations_that_files_have_are_as_they_were_and_where_they_were():
    scripts = (migration for migration in shipped() if isinstance(migration, str))
    digests = [hashlib.sha256(script.encode()).hexdigest()[:12] for script in scripts]
    assert digests == OUT_THERE.split()


def test_a_missing_file_is_made(path):
    Database.open(path).close()
    assert version(path) == len(shipped())


def test_an_empty_file_is_taken_as_a_new_one(path):
    path.touch()
    Database.open(path).close()
    assert version(path) == len(shipped())


@pytest.mark.parametrize("name", ["a b.db", "?mode=memory", "#1%41.db", ":memory:", "ünï.db"])
def test_any_file_name_is_a_file_name(tmp_path, name):
    Database.open(tmp_path / name).close()
    assert os.listdir(tmp_path) == [name]


def test_a_relative_path_given_as_text_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Database.open("svc.db").close()
    assert (tmp_path / "svc.db").is_file()


def test_an_older_file_is_upgraded_and_keeps_what_it_holds(path):
    database = Database.open(path)
    kept, salt = Decisions(database).add(record()), database.salt
    database.close()

    def count(connection):
        connection.execute("CREATE TABLE counts AS SELECT count(*) AS n FROM decisions")

    newer = Database.open(path, migrations=[*shipped(), NOTES, count])
    assert Decisions(newer).get(kept) is not None
    assert newer.salt == salt
    with newer.read() as connection:
        assert connection.execute("SELECT text FROM notes").fetchone()[0] == "a;b"
        assert connection.execute("SELECT n FROM counts").fetchone()[0] == 1
    newer.close()
    assert version(path) == len(shipped()) + 2


def test_an_upgrade_that_fails_halfway_leaves_the_older_file(path):
    Database.open(path).close()
    message = refused(path, migrations=[*shipped(), NOTES, "CREATE TABLE notes (again TEXT);"])
    assert str(path) in message
    assert version(path) == len(shipped())
    Database.open(path).close()


def test_a_newer_file_is_refused_and_untouched(path):
    Database.open(path, migrations=[*shipped(), NOTES]).close()
    before = path.read_bytes()
    message = refused(path)
    assert str(path) in message and "newer release" in message
    assert path.read_bytes() == before


def test_a_file_with_a_version_below_zero_is_refused_and_untouched(path):
    """It would be taken for a place from the end of the list of migrations."""
    Database.open(path, migrations=shipped()[:-1]).close()
    make(path, "PRAGMA user_version = -1;")
    before = path.read_bytes()
    message = refused(path)
    assert str(path) in message and "schema version -1, which no release ever made" in message
    assert path.read_bytes() == before


FIRST_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE calls (day TEXT PRIMARY KEY, spent INTEGER NOT NULL) WITHOUT ROWID;
"""


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (f"{FIRST_TABLES} PRAGMA user_version = 1;", "it has no table 'api_keys'"),
        ("DROP TABLE weeks;", "it has no table 'weeks'"),
        ("ALTER TABLE labels DROP COLUMN chance;", "'labels' has no column 'chance'"),
        ("ALTER TABLE decisions ADD COLUMN names TEXT;", "'decisions' has a column 'names'"),
    ],
)
def test_a_file_that_is_not_what_its_version_says_is_refused_and_untouched(path, statements, words):
    """As two schemas of this repository from before the first release are, both of version 1."""
    if "user_version" not in statements:
        Database.open(path).close()
    make(path, f"PRAGMA application_id = {0x53564344}; {statements}")
    before = path.read_bytes()
    message = refused(path)
    assert str(path) in message and words in message and "schema version" in message
    assert path.read_bytes() == before


def test_tables_that_others_put_beside_ours_do_no_harm(path):
    Database.open(path).close()
    make(path, "CREATE TABLE notes (text TEXT); ANALYZE;")
    Database.open(path).close()


@pytest.mark.parametrize("size", [1, 2, 99, 511, 512, 10_000])
def test_a_file_that_is_no_database_is_refused_and_untouched(path, size):
    content = b"x" * size
    path.write_bytes(content)
    message = refused(path)
    assert str(path) in message and "not a SQLite database" in message
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE theirs (a);",
        "PRAGMA application_id = 7; CREATE TABLE theirs (a);",
        "PRAGMA user_version = 1; CREATE TABLE theirs (a);",
        "PRAGMA journal_mode = WAL; CREATE TABLE theirs (a);",
        "PRAGMA user_version = 1;",
    ],
)
def test_another_programs_database_is_refused_and_untouched(path, statements):
    make(path, statements)
    before = path.read_bytes()
    message = refused(path)
    assert str(path) in message and "another program" in message
    assert path.read_bytes() == before


def test_a_file_whose_first_transaction_was_cut_off_is_made_anew(path, tmp_path):
    killed = tmp_path / "killed.db"
    with closing(sqlite3.connect(killed, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # so that pages reach the file before COMMIT
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE half (made)")
        connection.execute("INSERT INTO half VALUES (zeroblob(100000))")
        for suffix in ("", "-journal"):
            shutil.copy(f"{killed}{suffix}", f"{path}{suffix}")
    assert path.stat().st_size > 0
    Database.open(path).close()
    assert version(path) == len(shipped())


def test_a_directory_is_refused(tmp_path):
    assert "is a directory" in refused(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_its_other_end(path):
    os.mkfifo(path)
    assert "not a regular file" in refused(path)


def test_a_missing_folder_is_named(tmp_path):
    message = refused(tmp_path / "missing" / "svc.db")
    assert str(tmp_path / "missing") in message and "does not exist" in message


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc, where no file is made")
def test_a_folder_that_takes_no_file_is_refused():
    assert "cannot be opened for writing" in refused("/proc/svc.db")


@pytest.mark.parametrize("empty", [False, True])
def test_a_file_that_is_away_while_its_log_is_there_is_not_made_anew(path, empty):
    """SQLite would delete the log, and with it what a killed server had stored last."""
    database = Database.open(path)
    made = Decisions(database).add(record())
    away, beside = path.with_name("away.db"), [Path(f"{path}-{name}") for name in ("wal", "shm")]
    shutil.copy(path, away)
    kept = [one.read_bytes() for one in beside]
    database.close()
    path.unlink()
    if empty:
        path.touch()
    for one, content in zip(beside, kept, strict=True):
        one.write_bytes(content)
    assert f"'{beside[0]}' holds what was last written to it; put the file back" in refused(path)
    assert [one.read_bytes() for one in beside] == kept
    away.replace(path)
    with closing(Database.open(path)) as back:
        assert Decisions(back).get(made) is not None


def test_a_link_that_leads_to_itself_is_refused(path):
    path.symlink_to(path)
    assert f"database '{path}': " in refused(path)


def test_a_file_behind_too_many_links_is_refused(path):
    Database.open(path).close()
    for number in range(45):
        link = path.with_name(f"link{number}.db")
        link.symlink_to(path)
        path = link
    assert f"database '{path}': " in refused(path)


def test_a_file_its_log_and_its_index_may_each_be_links(path, tmp_path):
    """A server that was killed could not be started again."""
    there = tmp_path / "there"
    there.mkdir()
    for name in (path, *(Path(f"{path}{end}") for end in ("-wal", "-shm"))):
        name.symlink_to(there / name.name)
    database, log = Database.open(path), there / f"{path.name}-wal"
    Decisions(database).add(record())
    kept = log.read_bytes()
    database.close()
    log.write_bytes(kept)
    with closing(Database.open(path)) as again:
        assert len(Decisions(again).page("default", 10).entries) == 1


def test_a_copy_in_place_of_a_file_whose_log_is_still_there_is_refused_and_untouched(path):
    """SQLite would take what the log holds into the copy, which is of another time."""
    database, copy = Database.open(path), path.with_name("copy.db")
    Decisions(database).add(record())
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
    Decisions(database).add(record())
    log = Path(f"{path}-wal")
    kept = log.read_bytes()
    database.close()
    copy.replace(path)
    log.write_bytes(kept)
    before = path.read_bytes()
    message = refused(path)
    assert f"'{log}' beside it is the log of another file; remove it" in message
    assert (path.read_bytes(), log.read_bytes()) == (before, kept)
    log.unlink()
    with closing(Database.open(path)) as again:
        assert len(Decisions(again).page("default", 10).entries) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every file")
def test_a_file_that_may_not_be_written_is_refused(path):
    Database.open(path).close()
    path.chmod(0o400)
    assert "cannot be written" in refused(path)


@pytest.mark.parametrize("written", [b"CREATE TABLE api_keys", b"CREATE TABLE labels"])
def test_a_database_with_a_name_that_is_no_text_is_refused(path, written):
    Database.open(path).close()
    data = bytearray(path.read_bytes())
    place = data.index(written) + len(written) - 1
    data[place] = 0xFF
    path.write_bytes(data)
    assert "svc.db" in refused(path)


def test_a_damaged_database_is_refused(path):
    Database.open(path).close()
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)
    assert "damaged" in refused(path)


def test_a_refusal_is_one_line(tmp_path):
    path = tmp_path / "two\nlines.db"
    path.write_bytes(b"nothing")
    assert "\n" not in refused(path)


def test_processes_that_open_a_new_file_at_the_same_time_share_one_salt(path):
    with ExitStack() as stack:
        processes = [stack.enter_context(child("open_at_once", path)) for _ in range(4)]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        salts = [lines(process) for process in processes]
    assert len(set(map(tuple, salts))) == 1
    assert len(bytes.fromhex(salts[0][0])) == 32


def test_many_that_open_a_new_file_at_the_same_moment_all_find_it_theirs(tmp_path):
    together = Barrier(OPENERS)

    def open_one(file):
        together.wait(timeout=30)
        prepare(file, shipped())

    with ThreadPoolExecutor(OPENERS) as pool:
        for number in range(NEW_FILES):
            file = tmp_path / f"{number}.db"
            for opened in [pool.submit(open_one, file) for _ in range(OPENERS)]:
                opened.result()


def test_labels_of_the_first_schema_are_kept(path):
    """The first schema is filled by hand: today's code writes columns that it does not have."""
    Database.open(path, migrations=shipped()[:1]).close()
    make(
        path,
        """
        INSERT INTO questions VALUES (1, x'00', '{}');
        INSERT INTO decisions VALUES (1, x'01', 0, 'p', NULL, x'', 'm', 'verbal', 'svc-1.0.0',
            'standard', 0, 0, 0, '{}', '{}', '[1]', NULL);
        INSERT INTO labels VALUES (1, 1, 'q', 'p', 1, '"a"', 0, '[0.7, 0.3]');
        INSERT INTO learned VALUES ('p', x'00', 1, 1, 1, 1, 5, '{}');
        """,
    )
    database = Database.open(path)
    data = Labels(database).training_data(("p", b"\0"), 10)
    assert [list(p) for p in data.p] == [[0.7, 0.3]]
    assert (data.truth, data.members) == ([0], [None])
    assert (data.state.calibrator, data.state.pools) == ("{}", None)
    assert (data.answered_by, data.first_at, data.chance) == (["m verbal"], [0], [None])
    database.close()


def test_where_answers_seemed_to_have_changed_the_first_server_fits_anew(path):
    Database.open(path, migrations=shipped()[:21]).close()
    make(
        path,
        """
        INSERT INTO questions VALUES (1, x'00', '{}');
        INSERT INTO questions VALUES (2, x'01', '{}');
        INSERT INTO learned (project, digest, question_id, labels, revision, tried, calibrator,
            changed_at) VALUES ('p', x'00', 1, 40, 42, 42, '{}', 5), ('p', x'01', 2, 9, 9, 9, '{}',
            NULL);
        """,
    )
    database = Database.open(path)
    assert Labels(database).stale(10) == [("p", b"\0")]
    database.close()


def test_the_sums_of_projects_are_those_of_their_days_and_labels(path):
    Database.open(path, migrations=shipped()[:30]).close()
    sums = "failed, cached, answers, abstained, cost_usd, latency_ms"
    make(
        path,
        f"""
        INSERT INTO activity (span, by, start, project, name, decisions, {sums}) VALUES
            (86400, 'model', 86400, 'p', 'm', 2, 0, 0, 2, 0, 0.5, 1),
            (86400, 'model', 86400, 'p', 'n', 1, 0, 0, 1, 0, 0.5, 1),
            (86400, 'model', 172800, 'p', 'm', 3, 0, 0, 3, 0, 1.0, 1),
            (86400, 'model', 259200, 'p', 'm', 0, 1, 0, 0, 0, 0.0, 0),
            (86400, 'question', 172800, 'p', 'topic', 3, 0, 0, 3, 0, 0.0, 0),
            (3600, 'model', 172800, 'p', 'm', 3, 0, 0, 3, 0, 1.0, 1),
            (86400, 'model', 172800, 'failing', 'm', 0, 4, 0, 0, 0, 0.0, 0),
            (86400, 'model', 172800, 'q', 'm', 1, 0, 0, 1, 0, 0.0, 1);
        INSERT INTO questions VALUES (1, x'00', '{{}}', NULL);
        INSERT INTO learned (project, digest, question_id, labels, revision) VALUES
            ('p', x'00', 1, 40, 42), ('p', x'01', 1, 2, 2);
        """,
    )
    with closing(Database.open(path)) as database:
        found = Overview(database).projects(None, "", 10)
    assert found == [
        ProjectOverview("p", 6, 42, 172_800_000, 2.0),
        ProjectOverview("q", 1, 0, 172_800_000, 0.0),
    ]


def test_decisions_from_before_providers_names_were_kept_have_none(path):
    Database.open(path, migrations=shipped()[:3]).close()
    make(
        path,
        """
        INSERT INTO decisions VALUES (1, x'01', 0, 'p', NULL, x'', 'm', 'verbal', 'svc-1.0.0',
            'standard', 0, 0, 0, '{}', '{}', '[]', NULL);
        """,
    )
    database = Database.open(path)
    (entry,) = Decisions(database).page("p", 1).entries
    assert (entry.facts.model, entry.facts.provider_models) == ("m", None)
    database.close()


def test_labels_of_plans_in_the_second_schema_are_grouped_as_later_ones(path):
    """One of a council, and two of a cascade whose second question went on to another model."""
    Database.open(path, migrations=shipped()[:2]).close()
    make(
        path,
        """
        INSERT INTO questions VALUES (1, x'00', '{}');
        INSERT INTO decisions VALUES (1, x'01', 0, 'p', NULL, x'', '@p/w,@p/m', 'logprobs',
            'svc-1.0.0', 'standard', 0, 0, 0, '{"q": {"agreement": 1.0}}', '{}', '[1]', NULL);
        INSERT INTO decisions VALUES (2, x'02', 0, 'p', NULL, x'', '@p/m,@p/w', 'verbal',
            'svc-1.0.0', 'standard', 0, 0, 0,
            '{"q": {"answered_by": "@p/m"}, "q \\" 2": {"answered_by": "@p/w"}}', '{}', '[1, 1]',
            NULL);
        INSERT INTO labels VALUES (1, 1, 'q', 'p', 1, '"a"', 0, '[0.7, 0.3]',
            '{"@p/w": [0.7, 0.3], "@p/failed": null, "@p/m": [0.7, 0.3]}');
        INSERT INTO labels VALUES (2, 2, 'q', 'p', 1, '"a"', 0, '[0.7, 0.3]', NULL);
        INSERT INTO labels VALUES (3, 2, 'q " 2', 'p', 1, '"a"', 0, '[0.7, 0.3]', NULL);
        INSERT INTO learned VALUES ('p', x'00', 1, 3, 3, 3, 5, '{}', NULL);
        """,
    )
    database = Database.open(path)
    data = Labels(database).training_data(("p", b"\0"), 10)
    council = "@p/failed+@p/m+@p/w logprobs"
    assert sorted(data.answered_by) == [council, "@p/m verbal", "@p/w verbal"]
    database.close()
