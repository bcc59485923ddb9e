"""Hooks: where a project is told of what happens to it, and how far that works.

The whole URL, which may hold a token, and the secret that signs are encrypted with the operator's
master key. What is readable of the URL is its scheme, host and port.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum

from svc import limits
from svc.errors import SettingsError
from svc.jsontext import JsonObject
from svc.store.database import Database
from svc.store.errors import TooManyHooks
from svc.store.project_keys import MASTER_KEY
from svc.store.sealing import GET_SALT, Sealer, made_salt

# What the id of a hook begins with, and how many random bytes follow.
ID_PREFIX, ID_BYTES = "hook_", 6

_SALT = "hooks_salt"


class HookKind(StrEnum):
    """What a hook may be told of."""

    BATCH_DONE = "batch.done"
    BUDGET_WARNING = "budget.warning"
    DRIFT = "drift"
    PROMISE_BROKEN = "promise.broken"
    REVIEW_DUE = "review.due"


# Notes that a promise was made. No hook is told of it; without it, it would not be known later
# that there had been one.
PROMISE_KEPT = "promise.kept"


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook without its secret; times are in unix milliseconds.

    `place` is the scheme, host and port of its URL. `disabled` says why nothing is sent any more,
    and `failure` why nothing has been delivered since `failing_since`. Of its events `waiting` are
    still to be delivered, and `given_up` will never be.
    """

    id: str
    project: str
    kinds: list[HookKind]
    place: str
    allow_private: bool
    created_at: int
    disabled: str | None
    delivered_at: int | None
    failing_since: int | None
    failure: str | None
    waiting: int
    given_up: int


@dataclass(frozen=True, slots=True)
class OpenedHook:
    """What it takes to send to a hook."""

    url: str = field(repr=False)
    secret: str = field(repr=False)
    allow_private: bool


_ALL = (
    "SELECT id, project, kinds, place, allow_private, created_at, disabled, delivered_at, "
    "failing_since, failure, (SELECT count(*) FROM hook_events "
    "WHERE hook = hooks.seq AND settled_at IS NULL) AS waiting, given_up FROM hooks ORDER BY seq"
)
_ADD = (
    "INSERT INTO hooks (id, project, kinds, place, sealed, allow_private, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_COUNT = "SELECT count(*) FROM hooks WHERE project = ?"
_REMOVE = "DELETE FROM hooks WHERE id = ?"
_ENABLE = "UPDATE hooks SET disabled = NULL WHERE id = ? RETURNING seq"
_SEND_NOW = "UPDATE hook_events SET next_at = 0 WHERE hook = ? AND settled_at IS NULL"
_ANY_SEALED = "SELECT sealed FROM hooks LIMIT 1"
_SEALED = "SELECT sealed, allow_private FROM hooks WHERE seq = ?"
_WANTED = "SELECT DISTINCT project, kinds FROM hooks WHERE disabled IS NULL"
# What no hook is told of is not looked at, so that nobody would notice its end.
_FORGET_UNWANTED = f"""
DELETE FROM hook_alarms WHERE NOT EXISTS (
    SELECT 1 FROM hooks WHERE hooks.project = hook_alarms.project AND disabled IS NULL
    AND instr(kinds, '"' || iif(kind = '{PROMISE_KEPT}', '{HookKind.PROMISE_BROKEN}', kind) || '"')
)
"""


class Hooks:
    """Keeps hooks; changes of another process apply within seconds."""

    def __init__(
        self,
        database: Database,
        master_key: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives seconds since the epoch."""
        self._database, self._clock = database, clock
        self._sealer = None if master_key is None else Sealer(master_key)

    def require_master_key(self) -> Sealer:
        """What encrypts the secrets. Raises `SettingsError` without a master key."""
        if self._sealer is None:
            raise SettingsError(
                f"{MASTER_KEY} is not set; the secrets of hooks are encrypted with it"
            )
        return self._sealer

    def add(
        self,
        project: str,
        kinds: Collection[HookKind],
        place: str,
        opened: OpenedHook,
    ) -> str:
        """Tell a project's events of these kinds from now on; the id of the hook.

        Raises `SettingsError` without a master key, and for one that does not decrypt the other
        hooks, because the server has only one. Raises `TooManyHooks` and `StorageError`.
        """
        sealer = self.require_master_key()
        salt, other = self._database.write(_salt_and_other)
        if other is not None and sealer.open(other, salt) is None:
            raise SettingsError(
                f"{MASTER_KEY} is not the one that the other hooks were added with; use that one, "
                "or remove those hooks first"
            )
        hook_id = ID_PREFIX + secrets.token_hex(ID_BYTES)
        sealed = sealer.seal(json.dumps([opened.url, opened.secret]), salt)
        now_ms = int(self._clock() * 1000)
        row = (hook_id, project, json.dumps(sorted(kinds)), place, sealed, opened.allow_private)

        def insert(connection: sqlite3.Connection) -> None:
            if connection.execute(_COUNT, (project,)).fetchone()[0] >= limits.HOOKS:
                raise TooManyHooks(f"a project may have {limits.HOOKS} hooks at most")
            connection.execute(_ADD, (*row, now_ms))

        self._database.write(insert)
        return hook_id

    def remove(self, hook_id: str) -> bool:
        """Forget a hook and what waits for it; False where there is none. Raises `StorageError`."""

        def delete(connection: sqlite3.Connection) -> bool:
            removed = connection.execute(_REMOVE, (hook_id,)).rowcount == 1
            forget_unwanted(connection)
            return removed

        return self._database.write(delete)

    def enable(self, hook_id: str) -> bool:
        """Enable a hook, and send at once what waits for it; False where there is no such hook.

        Raises `StorageError`.
        """

        def write(connection: sqlite3.Connection) -> bool:
            found = connection.execute(_ENABLE, (hook_id,)).fetchall()
            connection.executemany(_SEND_NOW, found)
            return bool(found)

        return self._database.write(write)

    def all(self) -> list[Hook]:
        """Every hook, oldest first. Raises `StorageError`."""
        with self._database.read() as connection:
            return [_hook(row) for row in connection.execute(_ALL)]

    def wanted(self) -> dict[str, set[HookKind]]:
        """The kinds of events that hooks are told of, by project. Raises `StorageError`."""
        wanted: dict[str, set[HookKind]] = {}
        for project, kinds in self._database.rows(_WANTED):
            wanted.setdefault(project, set()).update(map(HookKind, json.loads(kinds)))
        return wanted

    def opened(self, seq: int) -> OpenedHook | None:
        """What it takes to send to the hook in this row; None where it cannot be decrypted.

        Also where it has just been removed. Raises `StorageError`.
        """
        row = next(iter(self._database.rows(_SEALED, seq)), None)
        salt = next(iter(self._database.rows(GET_SALT, _SALT)), None)
        if row is None or salt is None or self._sealer is None:
            return None
        text = self._sealer.open(row["sealed"], bytes(salt["value"]))
        if text is None:
            return None
        url, secret = json.loads(text)
        return OpenedHook(url, secret, bool(row["allow_private"]))


def forget_unwanted(connection: sqlite3.Connection) -> None:
    """Forget what lasts where no hook is told of it any more, inside a transaction."""
    connection.execute(_FORGET_UNWANTED)


def _salt_and_other(connection: sqlite3.Connection) -> tuple[bytes, bytes | None]:
    salt = made_salt(connection, _SALT)
    other = connection.execute(_ANY_SEALED).fetchone()
    return salt, other and other[0]


def _hook(row: sqlite3.Row) -> Hook:
    columns: JsonObject = dict(row)
    kinds = [HookKind(kind) for kind in json.loads(columns.pop("kinds"))]
    return Hook(kinds=kinds, allow_private=bool(columns.pop("allow_private")), **columns)
