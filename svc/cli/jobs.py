"""Jobs of a running server, as `svc batch` asks for them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from svc import jsontext
from svc.cli.asking import Unanswered, answered
from svc.cli.remote import Remote
from svc.cli.server import Answer, Server
from svc.errors import SettingsError, SvcError

PATH = "/v1/batch"
_ID = re.compile(r"job_[0-9a-f]{24}")
_LINES = "application/x-ndjson"
_ROW_NUMBER = re.compile("[0-9]{1,9}")

# These jobs end before their last row, and the same rows can be handed in again.
_GIVEN_UP = ("cancelled", "expired", "failed")
# The same rows are not looked for in more jobs than these that were given up within a day.
_MOST_GIVEN_UP = 100

# The end of the year 9999, and more than a job costs.
_LAST_MS, _MOST_USD = 253_402_300_799_999, 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as its server shows it; times in milliseconds since the epoch."""

    id: str
    status: str
    project: str
    created_at: int
    expires_at: int
    ended_at: int | None
    rows: int
    answered: int
    failed: int
    cost_usd: float
    ends_at: int | None
    waiting_for: str | None
    reason: str | None

    @property
    def settled(self) -> int:
        """How many rows have an answer or an error."""
        return self.answered + self.failed

    @property
    def is_open(self) -> bool:
        """Whether rows of it may still be asked."""
        return self.status in ("waiting", "running")

    @property
    def is_whole(self) -> bool:
        """Whether every row has an answer."""
        return self.status == "done" and not self.failed


@dataclass(frozen=True, slots=True)
class Handed:
    """A job that was handed in; `before` tells that it was there already."""

    job: Job
    before: bool


class JobServer:
    """The jobs of one server; all methods raise `SvcError`, and `Unanswered` of a busy server."""

    def __init__(self, remote: Remote) -> None:
        """Raises `SettingsError` for a malformed URL or key."""
        self._server = Server(remote.url, remote.key)

    def submit(self, body: bytes) -> Handed:
        """Hand in a job; the same body finds the job that was made of it within a day.

        Where that was given up, another one is made, once.
        """
        key = hashlib.sha256(body).hexdigest()
        for _ in range(_MOST_GIVEN_UP):
            headers = {"Content-Type": _LINES, "Idempotency-Key": key}
            try:
                answer = answered(self._server, "POST", PATH, body, headers)
            except Unanswered as error:
                raise Unanswered(
                    f"{error.message} The same command again makes no second job."
                ) from None
            job = _job(answer.value)
            if not answer.replayed:
                return Handed(job, before=False)
            job = self.get(job.id)
            if job.status not in _GIVEN_UP:
                return Handed(job, before=True)
            key = hashlib.sha256(f"{key} after {job.id}".encode()).hexdigest()
        raise SvcError(f"{_MOST_GIVEN_UP} jobs of these rows were given up today")

    def get(self, job_id: str) -> Job:
        return _job(self.shown(job_id).value)

    def shown(self, job_id: str) -> Answer:
        """The server's own answer about a job."""
        answer = answered(self._server, "GET", f"{PATH}/{job_id}")
        _job(answer.value)
        return answer

    def cancel(self, job_id: str) -> Job:
        return _job(answered(self._server, "POST", f"{PATH}/{job_id}/cancel").value)

    def results(self, job_id: str, after: int) -> Iterator[str]:
        """The lines of the rows after a number, a page at a time, as far as there are some."""
        while True:
            page = answered(self._server, "GET", f"{PATH}/{job_id}/results?after={after}")
            yield page.text
            told = page.next_after
            # An open job leads on to rows that have no answer yet.
            if not told or told == str(after):
                return
            if not _ROW_NUMBER.fullmatch(told) or int(told) < after:
                raise SvcError("the server's answer is not one of svc: it leads on to no row")
            after = int(told)

    def close(self) -> None:
        self._server.close()


def check_id(job_id: str) -> None:
    """Raise `SettingsError` for what is no id of a job."""
    if not _ID.fullmatch(job_id):
        raise SettingsError(
            f"{job_id[:100]!r} is no id of a job, such as job_ and 24 hexadecimal digits; "
            "`svc batch list` shows them"
        )


def jobs_of(page: Any) -> list[Job]:
    """The jobs of a page of their list. Raises `SvcError`."""
    listed = page.get("jobs") if isinstance(page, dict) else None
    if not isinstance(listed, list):
        raise _no_job()
    return [_job(one) for one in listed]


def _job(value: Any) -> Job:
    sound = isinstance(value, dict) and all(
        name in value and allowed(value[name])
        for allowed, names in _SHOWN.items()
        for name in names
    )
    # The id is printed, and becomes part of a path.
    if not sound or not _ID.fullmatch(value["id"]):
        raise _no_job()
    return Job(**{name: value[name] for names in _SHOWN.values() for name in names})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LAST_MS


def _is_count_or_null(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_cost(value: Any) -> bool:
    cost = jsontext.finite(value)
    return cost is not None and 0 <= cost <= _MOST_USD


# What the fields of a job hold; a server of a later version may show more of them.
_SHOWN = {
    _is_text: ("id", "status", "project"),
    _is_text_or_null: ("waiting_for", "reason"),
    _is_count: ("created_at", "expires_at", "rows", "answered", "failed"),
    _is_count_or_null: ("ended_at", "ends_at"),
    _is_cost: ("cost_usd",),
}


def _no_job() -> SvcError:
    return SvcError("the server answered with something that is no job; see --url")
