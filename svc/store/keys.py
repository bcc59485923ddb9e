"""API keys: who may send requests, how often, and for which project."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from svc.store.database import Database
from svc.store.errors import ApiKeyRefused

# What the text of a key begins with, and how many random bytes follow.
PREFIX, KEY_BYTES = "svc_", 32
# What the id of a key begins with, and how many random bytes follow.
ID_PREFIX, ID_BYTES = "key_", 6


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is kept of a key; its text is not.

    `rpm` is requests a minute, `project` None for every project. Times are in unix milliseconds;
    `revoked_at` is None while the key is active. `concurrency` is requests at the same time, None
    for the default.
    """

    id: str
    name: str
    rpm: int
    project: str | None
    created_at: int
    revoked_at: int | None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made: its id, and the text that nobody can show again."""

    id: str
    text: str = field(repr=False)


_COLUMNS = "id, name, rpm, project, created_at, revoked_at, concurrency"
# There is no row without any key, and a row of NULLs where no active key has the hash.
_ADMIT = (
    f"SELECT {_COLUMNS} FROM (SELECT 1) LEFT JOIN api_keys ON hash = ? AND revoked_at IS NULL "
    "WHERE EXISTS (SELECT 1 FROM api_keys)"
)
_ALL = f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at, name"
_CREATE = (
    "INSERT INTO api_keys (id, name, hash, rpm, project, created_at, concurrency) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING"
)
_REVOKE = "UPDATE api_keys SET revoked_at = ifnull(revoked_at, ?) WHERE id = ?"


class ApiKeys:
    """Makes, finds and revokes keys; changes of another process apply at once."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database = database
        self._clock = clock

    def admit(self, text: str | None) -> ApiKey | None:
        """The active key with this text; None as long as the database holds no key at all.

        Raises `ApiKeyRefused` where there are keys, revoked ones too, and this is no active one.
        Raises `StorageError`.
        """
        digest = None if text is None else _digest(text)
        row = next(iter(self._database.remembered_rows(_ADMIT, digest)), None)
        if row is None:
            return None
        if row["id"] is not None:
            return ApiKey(*row)
        raise ApiKeyRefused("the API key is missing, unknown or was revoked")

    def exist(self) -> bool:
        """Whether there is any key, revoked ones included. Raises `StorageError`."""
        return bool(self.all())

    def all(self) -> list[ApiKey]:
        """Every key, revoked ones included, oldest first. Raises `StorageError`."""
        with self._database.read() as connection:
            return [ApiKey(*row) for row in connection.execute(_ALL)]

    def create(
        self, name: str, rpm: int, project: str | None = None, concurrency: int | None = None
    ) -> NewKey | None:
        """Make a key for requests to `project`, or to all; None where the name is taken.

        A revoked key keeps its name. Raises `StorageError`.
        """
        key = NewKey(
            ID_PREFIX + secrets.token_hex(ID_BYTES), PREFIX + secrets.token_urlsafe(KEY_BYTES)
        )
        now = int(self._clock() * 1000)
        row = (key.id, name, _digest(key.text), rpm, project, now, concurrency)

        def insert(connection: sqlite3.Connection) -> bool:
            return connection.execute(_CREATE, row).rowcount == 1

        with self._database.changing():
            return key if self._database.write(insert) else None

    def revoke(self, key_id: str) -> bool:
        """Refuse the key from now on; False where there is no such id. Raises `StorageError`."""
        row = (int(self._clock() * 1000), key_id)

        def update(connection: sqlite3.Connection) -> bool:
            return connection.execute(_REVOKE, row).rowcount == 1

        with self._database.changing():
            return self._database.write(update)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
