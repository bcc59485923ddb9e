-- Version 1. A later version is a script or function of its own in `migrations.py`.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

-- Every exact question that was ever asked, once.
CREATE TABLE questions (
    id         INTEGER PRIMARY KEY,
    digest     BLOB NOT NULL UNIQUE,  -- SHA-256 of the exact question
    definition TEXT NOT NULL          -- its JSON
);

-- The most recent wording of each question key of a project.
CREATE TABLE asked (
    project     TEXT NOT NULL,
    key         TEXT NOT NULL,
    question_id INTEGER NOT NULL REFERENCES questions (id),
    PRIMARY KEY (project, key)
) WITHOUT ROWID;

CREATE TABLE decisions (
    seq          INTEGER PRIMARY KEY,   -- grows with the id
    id           BLOB NOT NULL UNIQUE,  -- ULID, 16 bytes
    created_at   INTEGER NOT NULL,      -- unix milliseconds
    project      TEXT NOT NULL,
    api_key      TEXT,
    state_hash   BLOB NOT NULL,         -- salted SHA-256
    model        TEXT NOT NULL,
    mode         TEXT NOT NULL,
    config       TEXT NOT NULL,
    privacy      TEXT NOT NULL,
    latency_ms   REAL NOT NULL,
    cost_usd     REAL NOT NULL,
    cached       INTEGER NOT NULL,
    answers      TEXT NOT NULL,         -- JSON object by question key, as returned
    readings     TEXT NOT NULL,         -- JSON object by question key, raw
    question_ids TEXT NOT NULL,         -- JSON array of questions.id, in the order of readings
    images       TEXT                   -- JSON array of salted SHA-256 in hex; NULL without images
);

CREATE INDEX decisions_by_project ON decisions (project);  -- and, as in every index, by seq

-- The true answers that callers gave: the newest one for each question of a decision.
CREATE TABLE labels (
    id           INTEGER PRIMARY KEY,  -- grows; a label given again gets a new one
    decision_seq INTEGER NOT NULL REFERENCES decisions (seq),
    key          TEXT NOT NULL,        -- of the question
    project      TEXT NOT NULL,
    question_id  INTEGER NOT NULL REFERENCES questions (id),
    label        TEXT NOT NULL,        -- JSON
    truth        INTEGER NOT NULL,     -- the true option in definition order, the level, or 0 or 1
    p            TEXT NOT NULL,        -- JSON array: the raw reading, copied from the decision
    UNIQUE (decision_seq, key)
);

CREATE INDEX labels_by_question ON labels (project, question_id);

-- What a project's labels taught about an exact question; no row before the first label.
CREATE TABLE learned (
    project     TEXT NOT NULL,
    digest      BLOB NOT NULL,             -- of the exact question
    question_id INTEGER NOT NULL REFERENCES questions (id),
    labels      INTEGER NOT NULL,          -- how many there are
    revision    INTEGER NOT NULL,          -- counts every label given, also those that replace one
    tried       INTEGER NOT NULL DEFAULT 0,  -- the revision that the last fit has seen
    fitted_at   INTEGER,                   -- unix milliseconds of the last fit
    calibrator  TEXT,                      -- JSON of the one in effect; NULL while there is none
    PRIMARY KEY (project, digest)
) WITHOUT ROWID;

-- Decisions by ISO week and top answer, so that drift costs no more as decisions add up.
CREATE TABLE weeks (
    project     TEXT NOT NULL,
    question_id INTEGER NOT NULL REFERENCES questions (id),
    week        INTEGER NOT NULL,  -- weeks since Monday, 29 December 1969, in UTC
    top         TEXT NOT NULL,     -- JSON of the top answer; '' for extracted values
    decisions   INTEGER NOT NULL,
    confidence  REAL NOT NULL,     -- the sum over them of the raw probability of the top answer
    PRIMARY KEY (project, question_id, week, top)
) WITHOUT ROWID;

CREATE TABLE api_keys (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    hash       BLOB NOT NULL UNIQUE,  -- SHA-256 of the key's text
    rpm        INTEGER NOT NULL,      -- requests a minute
    project    TEXT,                  -- NULL: every project
    created_at INTEGER NOT NULL,      -- unix milliseconds
    revoked_at INTEGER                -- unix milliseconds; NULL while it is active
) WITHOUT ROWID;

-- Aggregator keys of projects, encrypted with a key derived from the operator's.
CREATE TABLE project_keys (
    project TEXT PRIMARY KEY,
    token   BLOB NOT NULL  -- Fernet token
) WITHOUT ROWID;

-- Calls made to the aggregator.
CREATE TABLE calls (
    day   TEXT PRIMARY KEY,  -- ISO date, UTC
    spent INTEGER NOT NULL
) WITHOUT ROWID;
