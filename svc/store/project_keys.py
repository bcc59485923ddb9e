"""The projects' own keys for the aggregator, encrypted with the operator's master key."""

from __future__ import annotations

import logging
import sqlite3

from svc.errors import SettingsError
from svc.store.database import Database
from svc.store.errors import UnreadableKey
from svc.store.sealing import Sealer, made_salt

MASTER_KEY = "SVC_MASTER_KEY"
_SALT = "project_keys_salt"
_OTHER = "SELECT token FROM project_keys WHERE project <> ? LIMIT 1"
_GET = "SELECT token, value AS salt FROM project_keys LEFT JOIN meta ON name = ? WHERE project = ?"
_SET = "REPLACE INTO project_keys (project, token) VALUES (?, ?)"
_REMOVE = "DELETE FROM project_keys WHERE project = ?"

log = logging.getLogger(__name__)


class ProjectKeys:
    """Keeps one key for each project; changes of another process apply at once."""

    def __init__(self, database: Database, master_key: str | None) -> None:
        self._database = database
        self._sealer = None if master_key is None else Sealer(master_key)

    def get(self, project: str) -> str | None:
        """The project's key, None where it has none of its own.

        Raises `UnreadableKey` where it cannot be decrypted: no other key may be used instead.
        Raises `StorageError`.
        """
        row = next(iter(self._database.remembered_rows(_GET, _SALT, project)), None)
        if row is None:
            return None
        if row["salt"] is None:
            log.error("the salt of the projects' provider keys is gone from the database")
            raise UnreadableKey(
                "the project's own provider key cannot be decrypted, because its salt is gone from "
                "the database; the key must be removed and set again"
            )
        key = self._sealer.open(row["token"], row["salt"]) if self._sealer else None
        if key is None:
            log.error("a project's provider key cannot be decrypted: check %s", MASTER_KEY)
            raise UnreadableKey(
                "the project's own provider key cannot be decrypted; the server must be started "
                f"with the {MASTER_KEY} that the key was set with"
            )
        return key

    def require_master_key(self) -> Sealer:
        """What encrypts the keys. Raises `SettingsError` without a master key."""
        if self._sealer is None:
            raise SettingsError(f"{MASTER_KEY} is not set; project keys are encrypted with it")
        return self._sealer

    def set(self, project: str, key: str) -> None:
        """Keep `key` for `project`, instead of any other.

        Raises `SettingsError` without a master key, and for a master key that does not decrypt
        the keys of other projects, because the server has only one. Raises `StorageError`.
        """
        sealer = self.require_master_key()

        def prepare(connection: sqlite3.Connection) -> tuple[bytes, bytes | None]:
            salt = made_salt(connection, _SALT)
            other = connection.execute(_OTHER, (project,)).fetchone()
            return salt, other and other[0]

        salt, other = self._database.write(prepare)
        if other is not None and sealer.open(other, salt) is None:
            raise SettingsError(
                f"{MASTER_KEY} is not the one that the other projects' keys were set with; "
                "use that one, or remove those keys first"
            )
        row = (project, sealer.seal(key, salt))
        with self._database.changing():
            self._database.write(lambda connection: connection.execute(_SET, row).rowcount)

    def remove(self, project: str) -> bool:
        """Forget the project's key; False where there is none. Raises `StorageError`."""
        with self._database.changing():
            return self._database.write(
                lambda connection: connection.execute(_REMOVE, (project,)).rowcount == 1
            )
