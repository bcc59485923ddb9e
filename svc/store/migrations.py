"""Bring a database file to this version's schema, or say in one line why that is impossible."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from svc.errors import SettingsError
from svc.store.columns import Columns, columns_of, difference
from svc.store.connections import BUSY_TIMEOUT_S, connect, execute_patiently, primary_code

Migration = str | Callable[[sqlite3.Connection], None]

# "SVCD" in the header of a file says that this project made it.
APPLICATION_ID = 0x53564344

SALT_BYTES = 32

# The smallest SQLite database has one page of this size.
SMALLEST_BYTES = 512

# So many links after each other are looked at; systems follow no more.
_LINKS = 40

# The versions of the form that a file without a write-ahead log has in its head.
_WITHOUT_LOG = b"\x01\x01"

_NO_DATABASE = "it is not a SQLite database"
_DAMAGED = "it is damaged"

# What members of councils said, for labels to teach weights: in a label JSON, an object by model
# with the raw probabilities, null where a call failed; in what was learned a JSON array of pools.
_COUNCILS = """
ALTER TABLE labels ADD COLUMN members TEXT;
ALTER TABLE learned ADD COLUMN pools TEXT;
"""

# Where a label comes from: the answering models and the mode, as decisions have them since then: of
# a council all members, of a cascade the one that answered; how its decision came to be labelled
# and with which chance, both NULL where nobody said; and when, in unix milliseconds. What was
# learned had the time at which the answers changed. A week has the sum of the
# squared confidences; NULL where it began before they were counted.
_PROVENANCE = """
ALTER TABLE labels ADD COLUMN answered_by TEXT NOT NULL DEFAULT '';
ALTER TABLE labels ADD COLUMN sampled TEXT;
ALTER TABLE labels ADD COLUMN chance REAL;
ALTER TABLE labels ADD COLUMN created_at INTEGER;
UPDATE labels SET (answered_by, created_at) = (
    SELECT coalesce(
        (SELECT group_concat(key, '+') FROM (SELECT key FROM json_each(members) ORDER BY key)),
        (SELECT json_extract(value, '$.answered_by') FROM json_each(answers)
            WHERE key = labels.key),
        model
    ) || ' ' || mode, created_at FROM decisions WHERE seq = decision_seq
);
ALTER TABLE learned ADD COLUMN changed_at INTEGER;
ALTER TABLE weeks ADD COLUMN squares REAL;
"""

# What providers called the models that were asked; NULL when they said nothing.
_PROVIDER_MODELS = "ALTER TABLE decisions ADD COLUMN provider_models TEXT;"
# What the model's raw answer was worth, so that a new label costs one row and not all of them: the
# probability of the truth, that of the answer, and whether the answer was right. NULL in labels
# from before there were these columns.
_JUDGED = """
ALTER TABLE labels ADD COLUMN p_true REAL;
ALTER TABLE labels ADD COLUMN confidence REAL;
ALTER TABLE labels ADD COLUMN correct INTEGER;
"""

# The row that has the answers and readings of this one, where those are empty. The projects whose
# decisions may fill so many bytes, and how many they do.
_SIZES = """
ALTER TABLE decisions ADD COLUMN same_as INTEGER REFERENCES decisions (seq);
CREATE TABLE project_sizes (
    project   TEXT PRIMARY KEY,
    max_bytes INTEGER NOT NULL,
    bytes     INTEGER NOT NULL
) WITHOUT ROWID;
"""
# How many requests a key may have under way at the same time; NULL for the default.
_CONCURRENCY = "ALTER TABLE api_keys ADD COLUMN concurrency INTEGER;"
# The caller's own id of what was decided about, and tags as a JSON object; NULL where not given.
_REFS = """
ALTER TABLE decisions ADD COLUMN ref TEXT;
ALTER TABLE decisions ADD COLUMN tags TEXT;
CREATE INDEX decisions_by_ref ON decisions (project, ref) WHERE ref IS NOT NULL;
"""
# Sums of decisions over spans of so many seconds: `name` has the ids of the answering models where
# `by` is `model`, and a question's key where it is `question`. Those of days and hours begin with
# the decisions of before, as far as their rows tell.
_ACTIVITY = """
CREATE TABLE activity (
    span       INTEGER NOT NULL,
    by         TEXT NOT NULL,
    start      INTEGER NOT NULL,
    project    TEXT NOT NULL,
    name       TEXT NOT NULL,
    decisions  INTEGER NOT NULL,
    failed     INTEGER NOT NULL,
    cached     INTEGER NOT NULL,
    answers    INTEGER NOT NULL,
    abstained  INTEGER NOT NULL,
    cost_usd   REAL NOT NULL,
    latency_ms REAL NOT NULL,
    PRIMARY KEY (span, by, start, project, name)
) WITHOUT ROWID;
INSERT INTO activity
SELECT span, 'model', created_at / 1000 / span * span AS start, project, model,
       count(*), 0, sum(cached), 0, 0, sum(cost_usd), sum(latency_ms)
FROM decisions, (SELECT 3600 AS span UNION SELECT 86400)
GROUP BY span, start, project, model;
"""
# When each question was asked last, in unix milliseconds; NULL where that was not noted yet.
_ASKED_AT = "ALTER TABLE asked ADD COLUMN last_at INTEGER;"

# The review queue, by project and exact question; `store/review.py` says what it is. How far it has
# looked: the last row of a decision, and when, in unix milliseconds. Rounds of decisions that
# entered it together: the highest frontier since, and whether any of them may still be handed out.
# By round and level of doubt, the chance to be handed out, and the same relative to the mean of all
# decisions. How many decisions of each level there were. The decisions themselves, with who has or
# had them, and until when. A label has the round and the level of a decision that was handed out.
# What reviewers said, in the order in which they did: a label as JSON, NULL for no answer.
_REVIEW = """
CREATE TABLE review_frames (
    project     TEXT NOT NULL,
    question_id INTEGER NOT NULL REFERENCES questions (id),
    seen        INTEGER NOT NULL,
    looked_at   INTEGER NOT NULL,
    PRIMARY KEY (project, question_id)
) WITHOUT ROWID;
CREATE TABLE review_rounds (
    id          INTEGER PRIMARY KEY,
    project     TEXT NOT NULL,
    question_id INTEGER NOT NULL REFERENCES questions (id),
    reached     REAL NOT NULL DEFAULT 0,
    open        INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX review_rounds_open ON review_rounds (project, question_id, reached) WHERE open;
CREATE TABLE review_chances (
    round    INTEGER NOT NULL REFERENCES review_rounds (id),
    level    INTEGER NOT NULL,
    chance   REAL NOT NULL,
    relative REAL NOT NULL,
    PRIMARY KEY (round, level)
) WITHOUT ROWID;
CREATE TABLE review_levels (
    project     TEXT NOT NULL,
    question_id INTEGER NOT NULL REFERENCES questions (id),
    level       INTEGER NOT NULL,
    size        REAL NOT NULL,
    decisions   INTEGER NOT NULL,
    PRIMARY KEY (project, question_id, level)
) WITHOUT ROWID;
CREATE TABLE review_items (
    decision_seq INTEGER NOT NULL REFERENCES decisions (seq),
    key          TEXT NOT NULL,
    project      TEXT NOT NULL,
    question_id  INTEGER NOT NULL REFERENCES questions (id),
    round        INTEGER NOT NULL REFERENCES review_rounds (id),
    level        INTEGER NOT NULL,
    confidence   REAL NOT NULL,
    priority     REAL NOT NULL,
    state        INTEGER NOT NULL,
    reviewer     TEXT,
    leased_until INTEGER,
    PRIMARY KEY (decision_seq, key)
) WITHOUT ROWID;
CREATE INDEX review_items_by_turn ON review_items (project, question_id, state, priority);
CREATE TABLE judgements (
    id           INTEGER PRIMARY KEY,
    decision_seq INTEGER NOT NULL REFERENCES decisions (seq),
    key          TEXT NOT NULL,
    project      TEXT NOT NULL,
    question_id  INTEGER NOT NULL REFERENCES questions (id),
    reviewer     TEXT NOT NULL,
    label        TEXT,
    created_at   INTEGER NOT NULL
);
CREATE INDEX judgements_by_decision ON judgements (decision_seq, key);
CREATE INDEX judgements_by_question ON judgements (project, question_id);
ALTER TABLE labels ADD COLUMN review_round INTEGER REFERENCES review_rounds (id);
ALTER TABLE labels ADD COLUMN doubt INTEGER;
"""

# Answers of requests with an Idempotency-Key, for their repeats: a salted hash of the caller, the
# route and the key, another one of what was sent, and the body of the answer. NULL stands for one
# that may not be kept, and then there is the id of its decision.
_REPEATS = """
CREATE TABLE kept_answers (
    place       BLOB NOT NULL PRIMARY KEY,
    sent        BLOB NOT NULL,
    kept_at     INTEGER NOT NULL,
    answer      BLOB,
    decision_id TEXT
);
CREATE INDEX kept_answers_by_age ON kept_answers (kept_at);
"""

# So that a page of projects reads the days of those alone that are on it, and those
# from the index alone.
_PROJECT_DAYS = (
    "CREATE INDEX activity_by_project ON activity (project, decisions, cost_usd) "
    "WHERE span = 86400 AND by = 'model';"
)

# Jobs of many rows, and what became of each row: its decision, or an error as JSON. `id` is the
# caller's own of the row. Times are in unix milliseconds; `ends_at` is an estimate. The rows that
# are still to be asked wait beside the database, and never in it.
_JOBS = """
CREATE TABLE jobs (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    project     TEXT NOT NULL,
    api_key     TEXT,
    status      TEXT NOT NULL,
    reason      TEXT,
    waiting_for TEXT,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    ends_at     INTEGER,
    rows        INTEGER NOT NULL,
    answered    INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    cost_usd    REAL NOT NULL DEFAULT 0
);
CREATE INDEX jobs_by_project ON jobs (project, seq);
CREATE INDEX jobs_open ON jobs (seq) WHERE status IN ('waiting', 'running');
CREATE TABLE job_rows (
    job          INTEGER NOT NULL REFERENCES jobs (seq),
    row          INTEGER NOT NULL,
    id           TEXT NOT NULL,
    decision_seq INTEGER REFERENCES decisions (seq),
    debiased     INTEGER,
    error        TEXT,
    PRIMARY KEY (job, row)
) WITHOUT ROWID;
"""

_ENDED_JOBS = """
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at IS NOT NULL;
"""

# Limits in nanodollars of projects by name and of keys by id, what of each is spent or reserved in
# a period, and whether its warning level was reached; a job has one limit or none, and the spending
# of a job stands under its row.
_BUDGETS = """
CREATE TABLE budgets (
    scope       TEXT NOT NULL,
    subject     TEXT NOT NULL,
    per         TEXT NOT NULL,
    nanodollars INTEGER NOT NULL,
    hard        INTEGER NOT NULL,
    warn_at     REAL NOT NULL,
    PRIMARY KEY (scope, subject, per)
) WITHOUT ROWID;
CREATE TABLE budget_spending (
    scope    TEXT NOT NULL,
    subject  TEXT NOT NULL,
    per      TEXT NOT NULL,
    period   TEXT NOT NULL,
    spent    INTEGER NOT NULL DEFAULT 0,
    reserved INTEGER NOT NULL DEFAULT 0,
    warned   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, subject, per, period)
) WITHOUT ROWID;
ALTER TABLE jobs ADD COLUMN nanodollars INTEGER;
"""

# Whose room an answer takes that is kept for repeats, NULL for nobody's; and of one that is made
# again from its decision, what is not stored there.
_KEPT_DECISIONS = """
ALTER TABLE kept_answers ADD COLUMN project TEXT;
ALTER TABLE kept_answers ADD COLUMN debiased INTEGER;
"""

# For how many days decisions of a project are kept; projects without a row keep them for ever.
# The indexes find what refers to a decision that is deleted.
_RETENTION = """
CREATE TABLE retention (
    project TEXT PRIMARY KEY,
    days    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX decisions_by_whole ON decisions (same_as) WHERE same_as IS NOT NULL;
CREATE INDEX job_rows_by_decision ON job_rows (decision_seq) WHERE decision_seq IS NOT NULL;
"""

# Models, or other wordings of a question, that a share of a project's decisions is also asked of.
# `state` says whether that goes on (`running`), or requests that name no model are asked of it
# (`promoted`), or were (`retired`). `question_id` is the exact question that callers ask, `wording`
# a question as callers write it, NULL for the same one. `dropped` counts decisions that found no
# room in the queue, `refused` those that could not be given to it. No row is used twice: answers
# and costs may still come when a challenger is removed. An answer has the raw reading and the
# fields of the answer to this question as JSON, or the code of an error.
_CHALLENGERS = """
CREATE TABLE challengers (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    project     TEXT NOT NULL,
    key         TEXT NOT NULL,
    question_id INTEGER NOT NULL REFERENCES questions (id),
    model       TEXT,
    wording     TEXT,
    share       REAL NOT NULL,
    state       TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    promoted_at INTEGER,
    dropped     INTEGER NOT NULL DEFAULT 0,
    refused      INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX challengers_in_force ON challengers (project, key, state)
    WHERE state IN ('running', 'promoted');
CREATE TABLE challenger_answers (
    decision_seq INTEGER NOT NULL REFERENCES decisions (seq) ON DELETE CASCADE,
    challenger   INTEGER NOT NULL REFERENCES challengers (id),
    p            TEXT,
    answer       TEXT,
    error        TEXT,
    cost_usd     REAL NOT NULL,
    latency_ms   REAL NOT NULL,
    PRIMARY KEY (decision_seq, challenger)
) WITHOUT ROWID;
CREATE INDEX challenger_answers_by_challenger ON challenger_answers (challenger, decision_seq);
"""

# Where projects are told of what happens, see `hooks.py`: `kinds` is a JSON array, `place` the
# scheme, host and port, and `sealed` holds the whole URL and the secret that signs. Times are in
# unix milliseconds. `disabled` says why nothing is sent any more. An event is for one hook, and
# once for each of its keys; `tried_at` is when it was sent first, and `settled_at` when it was
# delivered or given up. What lasts, such as drift, is an alarm from when it was seen first; it is
# `over` when it has ended and one that begins again soon is still the same. Drift is looked for
# once a day.
_HOOKS = """
CREATE TABLE hooks (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    project       TEXT NOT NULL,
    kinds         TEXT NOT NULL,
    place         TEXT NOT NULL,
    sealed        BLOB NOT NULL,
    allow_private INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    disabled      TEXT,
    delivered_at  INTEGER,
    failing_since INTEGER,
    failure       TEXT,
    given_up      INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX hooks_by_project ON hooks (project);
CREATE TABLE hook_events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    hook       INTEGER NOT NULL REFERENCES hooks (seq) ON DELETE CASCADE,
    id         TEXT NOT NULL UNIQUE,
    key        TEXT NOT NULL,
    subject    TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    tried_at   INTEGER,
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,
    settled_at INTEGER,
    UNIQUE (hook, key)
);
CREATE INDEX hook_events_waiting ON hook_events (hook, subject, seq) WHERE settled_at IS NULL;
CREATE INDEX hook_events_settled ON hook_events (settled_at) WHERE settled_at IS NOT NULL;
CREATE TABLE hook_alarms (
    project TEXT NOT NULL,
    kind    TEXT NOT NULL,
    subject TEXT NOT NULL,
    name    TEXT NOT NULL,
    key     TEXT NOT NULL,
    since   INTEGER NOT NULL,
    over    INTEGER NOT NULL DEFAULT 0,
    data    TEXT NOT NULL,
    PRIMARY KEY (project, kind, subject, name)
) WITHOUT ROWID;
CREATE TABLE hook_looks (
    project TEXT PRIMARY KEY,
    day     TEXT NOT NULL
) WITHOUT ROWID;
"""

# The model and the mode of a challenger's answer, by which labels teach it; NULL of answers from
# before there was this column, and of those that failed.
_CHALLENGERS_LEARN = "ALTER TABLE challenger_answers ADD COLUMN answered_by TEXT;"
# Of a label, in unix milliseconds: when its decision was made, and when the first of those labels
# was given whose place it took, NULL where it took none. What was learned is learned anew where
# answers seemed to have changed: they may not have. Reports find that out themselves now.
_LABEL_TIMES = """
ALTER TABLE labels ADD COLUMN first_at INTEGER;
ALTER TABLE labels ADD COLUMN decided_at INTEGER NOT NULL DEFAULT 0;
UPDATE labels SET decided_at = (SELECT created_at FROM decisions WHERE seq = decision_seq);
UPDATE learned SET tried = tried - 1, changed_at = NULL WHERE changed_at IS NOT NULL;
"""
# The project that brought a wording first, which counts it against its limit; NULL of those from
# before there was this column.
_WORDINGS_COUNT = "ALTER TABLE questions ADD COLUMN brought_by TEXT;"
# Labels have their readings packed from here on (see `readings`): nothing changes, but that older
# programs, which cannot read those, refuse the file.
_PACKED_READINGS = ""
# A question is looked for in the index alone: in a row it stands behind all that was read and
# answered. This reads all decisions once.
_ASKED_IN_INDEX = """
DROP INDEX decisions_by_project;
CREATE INDEX decisions_by_project ON decisions (project, seq, question_ids);
"""
# Decisions that reviewers gave back are counted for each look at the review queue, without those
# that they labelled.
_GIVEN_BACK_IN_INDEX = """
CREATE INDEX judgements_given_back ON judgements (project, question_id, decision_seq, key)
    WHERE label IS NULL;
"""
# Labels that did not come from the review queue are counted for each look at it, without those
# that did.
_ELSEWHERE_IN_INDEX = """
CREATE INDEX labels_from_elsewhere ON labels (project, question_id) WHERE review_round IS NULL;
"""
# What is out with reviewers is found by who has it and by until when, without the rest that is out:
# a look at the queue has the write lock.
_HANDED_IN_INDEX = """
CREATE INDEX review_items_by_reviewer
    ON review_items (project, question_id, reviewer, leased_until) WHERE state = 1;
CREATE INDEX review_items_by_lease
    ON review_items (project, question_id, leased_until) WHERE state = 1;
"""
# A wording, or a round of the review queue, that is deleted is looked for in all tables that refer
# to it, inside the write lock: without these they were read whole for each one. Indexes that
# began with the project have it behind the wording now, where statements give both. That of `asked`
# has the key once more, which counts.
_REFERENCES_IN_INDEX = """
DROP INDEX labels_by_question;
CREATE INDEX labels_by_question ON labels (question_id, project);
DROP INDEX judgements_by_question;
CREATE INDEX judgements_by_question ON judgements (question_id, project);
DROP INDEX review_items_by_turn;
CREATE INDEX review_items_by_turn ON review_items (question_id, project, state, priority);
CREATE INDEX asked_by_question ON asked (question_id);
CREATE INDEX weeks_by_question ON weeks (question_id);
CREATE INDEX learned_by_question ON learned (question_id);
CREATE INDEX challengers_by_question ON challengers (question_id);
CREATE INDEX review_frames_by_question ON review_frames (question_id);
CREATE INDEX review_levels_by_question ON review_levels (question_id);
CREATE INDEX review_rounds_by_question ON review_rounds (question_id);
CREATE INDEX review_items_by_round ON review_items (round);
CREATE INDEX labels_by_round ON labels (review_round) WHERE review_round IS NOT NULL;
UPDATE project_sizes SET bytes = bytes + (
    SELECT coalesce(sum(30 + size + iif(size > 980, 4096, 0)), 0) FROM (
        SELECT length(CAST(project || key AS BLOB)) AS size FROM asked
        WHERE asked.project = project_sizes.project
    )
);
"""
# SQLite appends the primary key to an index of a table without row ids. With the project second,
# the first two were preferred to the primary key for what one project asks, and each row was looked
# up again; with another column second they serve deletions alone. Rounds are asked for by both.
_REFERENCES_ALONE = """
DROP INDEX weeks_by_question;
CREATE INDEX weeks_by_question ON weeks (question_id, top);
DROP INDEX review_levels_by_question;
CREATE INDEX review_levels_by_question ON review_levels (question_id, level);
DROP INDEX review_rounds_by_question;
CREATE INDEX review_rounds_by_question ON review_rounds (question_id, project);
"""
# The sums of projects. They were read from those of days and of questions, of which a caller who
# makes up names has millions. `last_day` is the start of the last one with decisions, in unix
# seconds.
_PROJECT_SUMS = """
CREATE TABLE projects (
    project   TEXT PRIMARY KEY,
    decisions INTEGER NOT NULL,
    labels    INTEGER NOT NULL DEFAULT 0,
    cost_usd  REAL NOT NULL,
    last_day  INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO projects (project, decisions, cost_usd, last_day)
    SELECT project, sum(decisions), sum(cost_usd), max(iif(decisions, start, 0)) FROM activity
    WHERE span = 86400 AND by = 'model' GROUP BY project HAVING sum(decisions);
UPDATE projects SET labels =
    (SELECT coalesce(sum(labels), 0) FROM learned WHERE learned.project = projects.project);
DROP INDEX activity_by_project;
"""
# The most recent labels that came from the review queue are found without those that did not.
_REVIEWED_IN_INDEX = """
CREATE INDEX labels_from_review ON labels (project, question_id) WHERE review_round IS NOT NULL;
"""


@cache
def shipped() -> tuple[Migration, ...]:
    """The scripts and functions that lead from an empty file to this version, in order.

    Scripts hold whole statements and no transaction of their own. A released one is never edited:
    a change of the schema is one more at the end.
    """
    schema = resources.files(__package__).joinpath("schema.sql").read_text("utf-8")
    added = [_COUNCILS, _PROVENANCE, _PROVIDER_MODELS, _JUDGED, _SIZES, _CONCURRENCY, _REFS]
    added += [_ACTIVITY, _REVIEW, _ASKED_AT, _REPEATS, _PROJECT_DAYS, _JOBS, _ENDED_JOBS]
    added += [_BUDGETS, _KEPT_DECISIONS, _RETENTION, _CHALLENGERS, _HOOKS]
    added += [_CHALLENGERS_LEARN, _LABEL_TIMES, _WORDINGS_COUNT]
    added += [_PACKED_READINGS, _ASKED_IN_INDEX, _GIVEN_BACK_IN_INDEX, _ELSEWHERE_IN_INDEX]
    added += [_HANDED_IN_INDEX, _REFERENCES_IN_INDEX, _REFERENCES_ALONE, _PROJECT_SUMS]
    added += [_REVIEWED_IN_INDEX]
    return (schema, *added)


def prepare(path: Path, migrations: Sequence[Migration], may_create: bool = True) -> None:
    """Create the file where that is allowed, or upgrade it in one transaction.

    Raises `SettingsError`; a file that is not this project's is left as it was.
    """
    try:
        _check_place(path)
        _check_log(path)
        if path.exists():
            _check_untouched(path, migrations)
        with contextlib.closing(connect(path, "rwc" if may_create else "rw")) as connection:
            _migrate(connection, path, migrations)
            execute_patiently(connection, "PRAGMA journal_mode = WAL", BUSY_TIMEOUT_S)
    except (sqlite3.Error, OSError) as error:
        raise _refused(path, _reason(error)) from error
    except UnicodeDecodeError as error:
        # The name of a table or column, which SQLite does not look at.
        raise _refused(path, _DAMAGED) from error


def _refused(path: Path, reason: str) -> SettingsError:
    return SettingsError(f"database {str(path)!r}: {reason}")


def _check_place(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        # `exists` says of what cannot be looked at, such as too many links, that it is not there.
        path.stat()
    if path.exists() and not path.is_file():
        raise _refused(path, "it is a directory" if path.is_dir() else "it is not a regular file")
    if path.exists() and 0 < path.stat().st_size < SMALLEST_BYTES:
        # SQLite would overwrite a file of one byte.
        raise _refused(path, _NO_DATABASE)
    if not path.absolute().parent.is_dir():
        raise _refused(path, f"its folder {str(path.absolute().parent)!r} does not exist")


def _check_log(path: Path) -> None:
    """Check that a log beside the file is its own; SQLite would take in that of any other.

    A file that has a log says so in its head, before the log has anything in it. A copy of a
    backup does not. See "The Database Header" in SQLite's "Database File Format". Where the file
    is not there, or has nothing in it, SQLite would delete the log. Behind a link it would not look
    for the log that stands beside the link.
    """
    log = Path(f"{os.path.realpath(path)}-wal")
    for link in _links(path):
        left = Path(f"{link}-wal")
        is_other = os.path.realpath(left) != os.path.realpath(log)
        if is_other and left.exists() and left.stat().st_size:
            raise _refused(
                path,
                f"{str(link)!r} is a link, and {str(left)!r} holds what was last written before "
                "the link was made; put the file itself in the place of the link",
            )
    if not log.exists() or not log.stat().st_size:
        return
    if not path.exists() or not path.stat().st_size:
        raise _refused(
            path,
            f"it is not there or empty, but {str(log)!r} holds what was last written to it; put "
            "the file back, or, once no server runs, remove the log, and the -shm, for a new one",
        )
    with path.open("rb") as file:
        versions = file.read(20)[18:]
    if versions == _WITHOUT_LOG:
        raise _refused(
            path,
            f"{str(log)!r} beside it is the log of another file; remove it, and the -shm, where "
            "this is a backup that was put back",
        )


def _links(path: Path) -> Iterator[Path]:
    """The links from a path to the file itself, of which there are few."""
    link = path.absolute()
    for _ in range(_LINKS):
        if not link.is_symlink():
            return
        yield link
        link = link.parent / os.readlink(link)


def _check_untouched(path: Path, migrations: Sequence[Migration]) -> None:
    """Check the file through a connection that cannot change it."""
    with contextlib.closing(connect(path, "ro")) as connection:
        try:
            # The transaction gives one view of a file that another process may be creating.
            connection.execute("BEGIN")
            _version(connection, path, migrations)
        except sqlite3.OperationalError as error:
            # Its last writer was killed, and only a connection that may write can repair it.
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise


def _version(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> int:
    """The file's schema version, 0 for an empty one. Raises `SettingsError`."""
    newest = len(migrations)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or version or objects):
        raise _refused(path, "it is a SQLite database of another program")
    if version < 0:
        raise _refused(path, f"it has schema version {version}, which no release ever made")
    if version > newest:
        raise _refused(
            path,
            f"it has schema version {version}, made by a newer release; this one reads up to "
            f"{newest}",
        )
    _check_tables(connection, path, migrations[:version])
    return int(version)


def _check_tables(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]
) -> None:
    """Raise `SettingsError` unless the file has the tables that its version stands for.

    Before releases there were several schemas of one version.
    """
    wrong = difference(columns_of(connection), _columns_after(tuple(migrations)))
    if wrong is not None:
        raise _refused(
            path,
            f"{wrong}, so it is not of schema version {len(migrations)}, as it says: an "
            "unreleased version made it, and this one cannot read it; move it away, or name "
            "another file",
        )


# Cached, because each file is checked twice: before its lock is taken, and with it.
@lru_cache(maxsize=4)
def _columns_after(migrations: tuple[Migration, ...]) -> Columns:
    """What a file has to which these were applied."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        for migration in migrations:
            _apply(model, migration)
        return columns_of(model)


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Apply the missing migrations in one transaction; another process that does so waits."""
    connection.execute("BEGIN IMMEDIATE")
    version = _version(connection, path, migrations)
    if version < len(migrations):
        for migration in migrations[version:]:
            _apply(connection, migration)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
    salt = secrets.token_bytes(SALT_BYTES)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('salt', ?)", (salt,))
    connection.execute("COMMIT")


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    if callable(migration):
        migration(connection)
        return
    for statement in _statements(migration):
        connection.execute(statement)


def _statements(script: str) -> Iterator[str]:
    """The statements one by one, because `executescript` would commit before the first."""
    statement = ""
    for part in script.split(";")[:-1]:
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _reason(error: Exception) -> str:
    if not isinstance(error, sqlite3.Error):
        return f"it cannot be opened ({getattr(error, 'strerror', None) or type(error).__name__})"
    reasons = {
        sqlite3.SQLITE_NOTADB: _NO_DATABASE,
        sqlite3.SQLITE_BUSY: "it is locked by another process",
        sqlite3.SQLITE_READONLY: "it cannot be written to",
        sqlite3.SQLITE_CANTOPEN: "it cannot be opened for writing",
        sqlite3.SQLITE_CORRUPT: _DAMAGED,
        sqlite3.SQLITE_FULL: "its disk is full",
    }
    return reasons.get(primary_code(error) or 0, f"it cannot be used ({error})")
