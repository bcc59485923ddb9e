"""What the store refuses. It knows no HTTP: its callers decide which status an error has.

A database that does not take or give a record is `svc.errors.StorageError` throughout.
"""

from __future__ import annotations

from svc.errors import SvcError


class UnknownDecision(SvcError):
    """The project has no decision of this id."""


class ApiKeyRefused(SvcError):
    """There are API keys, and the given one is not an active one of them."""


class UnreadableKey(SvcError):
    """A project's provider key is there but cannot be decrypted; the message says why."""
