"""What the store refuses. It knows no HTTP: its callers decide which status an error has."""

from __future__ import annotations

from svc.errors import SvcError


class StorageError(SvcError):
    """The database would not take or give a record."""


class WriteTimedOut(StorageError):
    """A write was waited for too long; it may come into the database all the same."""


class UnknownDecision(SvcError):
    """The project has no decision of this id."""


class ProjectFull(SvcError):
    """The decisions of the project fill all the bytes that they may."""


class TooManySums(SvcError):
    """A report would read more sums than it may."""


class ApiKeyRefused(SvcError):
    """There are API keys, and the given one is not an active one of them."""


class RowSettled(StorageError):
    """The row of a job got its answer or its error elsewhere meanwhile, or was forgotten."""


class UnknownJob(SvcError):
    """There is no job of this id, or not in the project."""


class TooManyJobs(SvcError):
    """The key has as many jobs that have not ended as it may."""


class TooManyBudgets(SvcError):
    """There are as many budgets as there may be."""


class TooManyHooks(SvcError):
    """The project has as many hooks as it may."""


class ChallengerThere(SvcError):
    """The question of the project has a challenger already."""


class SpoolLost(SvcError):
    """The inputs of a job cannot be had any more; the message says why."""


class UnreadableKey(SvcError):
    """A project's provider key is there but cannot be decrypted; the message says why."""
