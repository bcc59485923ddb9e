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

-- Calls made to the aggregator.
CREATE TABLE calls (
    day   TEXT PRIMARY KEY,  -- ISO date, UTC
    spent INTEGER NOT NULL
) WITHOUT ROWID;
