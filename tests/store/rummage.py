"""Roles of the processes in `test_remnants_under_load.py`: `python -m tests.store.rummage <role>`.

Each runs until it is killed. Of every row the text follows from its key and version, so that it is
known from the row itself whether it is whole.
"""

import hashlib
import random
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from svc.store import Remnants

KEYS = 300
DELETED = -1
TABLES = ("by_row", "by_key")

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE by_row (key INTEGER PRIMARY KEY, version INTEGER, text TEXT);
CREATE INDEX texts ON by_row (text);
CREATE TABLE by_key (key TEXT PRIMARY KEY, version INTEGER, text TEXT) WITHOUT ROWID;
"""


def text(key: int, version: int) -> str:
    """Between 64 and some thousand characters, that no other row has."""
    word = hashlib.sha256(f"{key} {version}".encode()).hexdigest()
    return word * (1 + int(word[:8], 16) % (90 if word[8] == "0" else 6))


def connected(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=20, isolation_level=None)


def versions(connection: sqlite3.Connection) -> dict[int, int]:
    """The version of each row, once all of them are found whole and in both tables."""
    tables = []
    for table in TABLES:
        rows = connection.execute(f"SELECT CAST(key AS INTEGER), version, text FROM {table}")
        found = {}
        for key, version, content in rows:
            assert content == text(key, version), (table, key, version)
            found[key] = version
        tables.append(found)
    assert tables[0] == tables[1]
    return tables[0]


def write(path: str, slot: str) -> None:
    """Note in a file of its own, before each commit and after it, what it wrote."""
    draw = random.Random(time.time_ns())
    with closing(connected(path)) as connection, Path(f"{path}.{slot}").open("a") as notes:
        connection.execute(f"PRAGMA secure_delete = {draw.choice(('ON', 'OFF'))}")
        connection.execute(f"PRAGMA mmap_size = {draw.choice((0, 1 << 26))}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {draw.choice((1, 20, 1000))}")
        while True:
            connection.execute("BEGIN IMMEDIATE")
            changed = []
            for _ in range(draw.randrange(1, 12)):
                key = int(slot) * KEYS + draw.randrange(KEYS)
                version = draw.choice((DELETED, time.time_ns(), time.time_ns()))
                for table in TABLES:
                    connection.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
                    if version != DELETED:
                        row = (key, version, text(key, version))
                        connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?)", row)
                changed.append(f"{key} {version}")
            print("before", *changed, sep=",", file=notes, flush=True)
            connection.execute("COMMIT")
            print("after", *changed, sep=",", file=notes, flush=True)
            time.sleep(draw.choice((0.0, 0.01, 0.05)))


def read(path: str, _slot: str) -> None:
    """Look twice in each transaction, which must not see what others do meanwhile."""
    with closing(connected(path)) as connection:
        while True:
            connection.execute("BEGIN")
            before = versions(connection)
            time.sleep(0.02)
            assert versions(connection) == before
            connection.execute("COMMIT")
            time.sleep(0.02)


def clean(path: str, _slot: str) -> None:
    while True:
        with closing(Remnants(Path(path))) as remnants:
            remnants.clean(patience_s=2.0)


if __name__ == "__main__":
    {"write": write, "read": read, "clean": clean}[sys.argv[1]](*sys.argv[2:])
