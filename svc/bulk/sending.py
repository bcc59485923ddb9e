"""One batch on its way: to the provider, through its queue, and its results into the book.

Each step may be the last one before the process is killed, so what it is about to do is written
down before. A file may then be uploaded twice, which costs nothing; a batch is never created twice.
A creation whose response was lost may have taken place: the provider's batches are looked through
for it, several times, because it may still be under way.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from svc import limits
from svc.bulk.durable import PART, whole, write_json
from svc.bulk.replay import NO_STATUS
from svc.bulk.wanted import BatchFile
from svc.errors import SvcError
from svc.jsontext import JsonObject
from svc.providers import (
    BadReply,
    BatchClient,
    CallTimedOut,
    Gone,
    ProviderError,
    RemoteBatch,
    ServerTrouble,
    State,
    Throttled,
)

# How often the batches are looked through for one whose creation had no response.
LOOKS = 3

# A batch that failed by these is created again after a while.
_FULL = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "queue_limit_exceeded"})
_FULL_WAIT_S = 60.0

# The longest wait after a failure of the provider, and how long failures in a row are borne.
_LONGEST_WAIT_S = 60.0
PATIENCE_S = 3_600.0

# After these nobody knows whether the provider did what it was asked.
_UNCLEAR = (ServerTrouble, CallTimedOut, BadReply)

# The HTTP statuses there are.
_STATUSES = range(100, 600)

_CALL = re.compile(rb'\{"custom_id":"([0-9a-f]{32})"')


class RoundsEnd(SvcError):
    """The rounds cannot go on now; the message says why."""


@dataclass(slots=True)
class _Record:
    """What is known of a batch at its provider.

    It was tried to upload the file, and to create the batch, where these are true. `attempt` counts
    the batches that failed whole.
    """

    uploading: bool = False
    file: str | None = None
    creating: bool = False
    batch: str | None = None
    attempt: int = 0


class Sending:
    """Brings one batch to its end, step by step."""

    def __init__(
        self,
        file: BatchFile,
        api: BatchClient,
        poll_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`poll_s` are the seconds between two looks at it."""
        self.file, self.done = file, 0
        self._api, self._poll_s, self._clock = api, poll_s, clock
        self._record = _Record(**_read(file.record))
        self._at = clock() + (self._settle_s if self._record.creating else 0.0)
        self._looks = 0
        self._failures = 0
        self._well_at = clock()

    @property
    def over(self) -> bool:
        """Whether the results are in the book."""
        return self.file.replies.exists()

    def step(self) -> None:
        """Do what is due. Raises `RoundsEnd` where the provider refuses it for good."""
        if self.over or self._clock() < self._at:
            return
        self._at = self._clock() + self._poll_s
        try:
            if self._record.batch is None:
                self._send()
            else:
                self._look(self._api.look(self._record.batch))
        except ProviderError as error:
            self._bear(error)
        else:
            self._failures, self._well_at = 0, self._clock()

    def cancel(self) -> None:
        """Ask the provider to carry out no more of it."""
        if self.over:
            return
        with suppress(ProviderError):
            lost = self._record.creating and self._record.batch is None
            batch = self._api.find(self._name) if lost else None
            if (found := batch.id if batch else self._record.batch) is not None:
                self._api.cancel(found)

    @property
    def _name(self) -> str:
        return f"{self.file.name}-{self._record.attempt}"

    @property
    def _settle_s(self) -> float:
        """How long after a lost response a creation may still take place."""
        return min(5.0, self._poll_s)

    def _save(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self._record, name, value)
        write_json(self.file.record, asdict(self._record))

    def _send(self) -> None:
        batch = self._lost() if self._record.creating else None
        if batch is None and self._record.creating and self._looks < LOOKS:
            self._at = self._clock() + self._settle_s
            return
        if batch is None:
            batch = self._create(self._uploaded())
        self._save(batch=batch.id)

    def _lost(self) -> RemoteBatch | None:
        self._looks += 1
        return self._api.find(self._name)

    def _uploaded(self) -> str:
        """The id of the file at the provider."""
        if self._record.file is None:
            file_name = f"{self.file.name}.jsonl"
            found = self._api.find_file(file_name) if self._record.uploading else None
            self._save(uploading=True)
            self._save(file=found or self._api.upload(file_name, self.file.calls))
        assert self._record.file is not None
        return self._record.file

    def _create(self, file_id: str) -> RemoteBatch:
        self._save(creating=True)
        self._looks = 0
        try:
            return self._api.create(file_id, self._name, self.file.model)
        except ProviderError as error:
            if not isinstance(error, _UNCLEAR):
                self._save(creating=False)
            raise

    def _look(self, batch: RemoteBatch) -> None:
        self.done = batch.done
        if batch.state is State.FAILED and not batch.files:
            self._failed(batch)
        elif batch.state is not State.RUNNING:
            self._enter(batch)
            self._clear(batch)
            if batch.state is State.CANCELLED:
                raise RoundsEnd(f"batch {batch.id} was cancelled at provider {self.file.provider}")

    def _failed(self, batch: RemoteBatch) -> None:
        """Nothing of it was carried out, so that another batch takes its place."""
        self._save(batch=None, creating=False, attempt=self._record.attempt + 1)
        if batch.codes and _FULL.issuperset(batch.codes):
            self._at = self._clock() + max(self._poll_s, _FULL_WAIT_S)
            return
        codes = [code for code in map(self._api.code, batch.codes) if code]
        why = f" ({', '.join(codes)})" if codes else ""
        raise RoundsEnd(f"provider {self.file.provider} refused batch {batch.id}{why}")

    def _bear(self, error: ProviderError) -> None:
        """Wait after a failure that may pass. Raises `RoundsEnd` for any other."""
        impatient = self._clock() - self._well_at > PATIENCE_S
        if impatient or not isinstance(error, (Throttled, *_UNCLEAR)):
            gone = "it has no such batch, file or path"
            words = gone if isinstance(error, Gone) else error.as_api_error().message
            raise RoundsEnd(f"the batches of provider {self.file.provider}: {words}") from None
        self._failures += 1
        wait_s = min(_LONGEST_WAIT_S, self._poll_s * 2.0**self._failures)
        self._at = self._clock() + (error.retry_after or wait_s)

    def _enter(self, batch: RemoteBatch) -> None:
        """Put the results into the book, with a line for each call that has none."""
        with self.file.calls.open("rb") as calls:
            missing = {match[1].decode() for match in map(_CALL.match, calls) if match}
        with whole(self.file.replies) as replies:
            for file_id in batch.files:
                for call, status, body in self._results(file_id):
                    if call in missing:
                        missing.remove(call)
                        replies.write(b"%s %d %s\n" % (call.encode(), status, body))
            for call in sorted(missing):
                replies.write(b"%s %d {}\n" % (call.encode(), NO_STATUS))

    def _results(self, file_id: str) -> Iterator[tuple[str, int, bytes]]:
        """The id, the status and the body of each result in a file."""
        path = self.file.replies.with_name(f"{self.file.stem}.results{PART}")
        with path.open("w+b") as file:
            self._api.download(file_id, file)
            file.seek(0)
            for line in _lines(file):
                if (result := _result(line)) is not None:
                    yield result
        path.unlink()

    def _clear(self, batch: RemoteBatch) -> None:
        """Delete the files, here and at the provider, of which the book now has what counts."""
        self.file.calls.unlink()
        for file_id in (self._record.file, *batch.files):
            with suppress(ProviderError):
                self._api.delete(file_id or "")


def _read(path: Path) -> JsonObject:
    record: JsonObject = json.loads(path.read_bytes()) if path.exists() else {}
    return record


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, without those that are longer than a reply may be."""
    is_start = True
    while piece := file.readline(limits.REPLY_BYTES):
        is_end = piece.endswith(b"\n") or len(piece) < limits.REPLY_BYTES
        if is_start and is_end:
            yield piece
        is_start = is_end


def _result(line: bytes) -> tuple[str, int, bytes] | None:
    """The result in a line, None where there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    call = value.get("custom_id") if isinstance(value, dict) else None
    if not isinstance(call, str):
        return None
    response = value.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(status, int) or status not in _STATUSES:
        return call, NO_STATUS, b"{}"
    body = json.dumps(response.get("body"), separators=(",", ":"))
    return call, status, body.encode()
