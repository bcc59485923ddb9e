"""Encryption of what is stored, under a key derived from the operator's."""

from __future__ import annotations

import base64
import hashlib
import secrets
import sqlite3
import threading
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

SALT_BYTES = 32
# scrypt (RFC 7914): 32 MiB and about 0.2 s for each guess at the master key.
_N, _R, _P = 2**15, 8, 3
_MEMORY_BYTES = 2 * 128 * _R * _N
_KEY_BYTES = 32

_NEW_SALT = "INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)"
GET_SALT = "SELECT value FROM meta WHERE name = ?"


class Sealer:
    """Encrypts and authenticates with Fernet; the derived key is kept, so only the first is slow.

    https://github.com/fernet/spec
    """

    def __init__(self, master_key: str) -> None:
        self._master_key = master_key
        # The salt, and what was derived with it.
        self._derived: tuple[bytes, Fernet] | None = None
        self._lock = threading.Lock()

    def seal(self, text: str, salt: bytes) -> bytes:
        """The token that holds `text`."""
        return self._fernet(salt).encrypt(text.encode())

    def open(self, token: bytes, salt: bytes) -> str | None:
        """The text in `token`; None when it was encrypted with another key, or is damaged."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet(salt).decrypt(token).decode()
        except InvalidToken:
            return None

    def _fernet(self, salt: bytes) -> Fernet:
        # Imported here, because it takes 8 MB that most servers never need.
        from cryptography.fernet import Fernet

        with self._lock:
            if self._derived is None or self._derived[0] != salt:
                self._derived = salt, Fernet(base64.urlsafe_b64encode(self._derive(salt)))
            return self._derived[1]

    def _derive(self, salt: bytes) -> bytes:
        # These are the bytes that the environment holds.
        secret = self._master_key.encode("utf-8", "surrogateescape")
        return _stretched(secret, salt)


# Cached, because several parts of a process have a sealer of their own for the same key.
@lru_cache(maxsize=8)
def _stretched(secret: bytes, salt: bytes) -> bytes:
    costs = {"n": _N, "r": _R, "p": _P, "maxmem": _MEMORY_BYTES}
    return hashlib.scrypt(secret, salt=salt, dklen=_KEY_BYTES, **costs)


def made_salt(connection: sqlite3.Connection, name: str) -> bytes:
    """The salt of this name, made where the database has none yet; inside a transaction."""
    connection.execute(_NEW_SALT, (name, secrets.token_bytes(SALT_BYTES)))
    (salt,) = connection.execute(GET_SALT, (name,)).fetchone()
    return bytes(salt)
