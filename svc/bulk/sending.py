"""One batch on its way: to the provider, through its queue, and its results into the book.

Each step may be the last one before the process is killed, so what it is about to do is written
down before. A file may then be uploaded twice, which costs nothing; a batch is never created twice.
A creation whose response was lost may have taken place: the provider's batches are looked through
for it, several times, because it may still be under way.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from svc import limits
from svc.bulk.durable import undamaged, whole, write_json
from svc.bulk.replay import label
from svc.bulk.results import Result, downloaded
from svc.bulk.wanted import BatchFile
from svc.errors import Damaged, SvcError
from svc.jsontext import JsonObject
from svc.providers import (
    WINDOW_HOURS,
    BadReply,
    BatchClient,
    CallTimedOut,
    Gone,
    KeyRefused,
    NoCredit,
    ProviderError,
    RemoteBatch,
    Resting,
    ServerTrouble,
    State,
    Throttled,
)

# How often the batches are looked through for one whose creation had no response, after pauses that
# are so many times longer after each further such creation; and how many of these there are at
# most, since the provider may carry out each.
LOOKS, LONGER, CREATIONS = 3, 4, 5

# For so many seconds a file or a batch may still come to be at the provider that gave no response.
CREATED_WITHIN_S = 60.0

# A batch that failed by these is created again after a while.
_FULL = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "queue_limit_exceeded"})
_FULL_WAIT_S = 60.0

# Why a batch is refused for good, as far as callers are told.
_CODES = frozenset(
    (
        *("billing_hard_limit_reached", "duplicate_custom_id", "empty_file", "file_not_found"),
        *("input_file_too_large", "insufficient_quota", "invalid_custom_id", "invalid_file_format"),
        *("invalid_json_line", "invalid_method", "invalid_url", "mismatched_model"),
        *("missing_required_parameter", "model_not_found", "too_many_tasks", "unsupported_model"),
    )
)

# The longest wait after a failure of the provider, whatever it says: what it has answered has to be
# fetched before the job expires.
_LONGEST_WAIT_S = 60.0

# How long a queue may be full, and how long after its window a batch is cancelled that has not
# ended; after twice that it is given up, in seconds.
FULL_PATIENCE_S = 86_400.0
GRACE_S = 7_200.0

# After these nobody knows whether the provider did what it was asked.
_UNCLEAR = (ServerTrouble, CallTimedOut, BadReply)

# Failures that may pass by themselves.
_PASSING = (Throttled, Resting, *_UNCLEAR)

_CALL = re.compile(rb'\{"custom_id":"([0-9a-f]{32})"')


class RoundsEnd(SvcError):
    """The rounds cannot go on now; the message says why."""


@dataclass(frozen=True, slots=True)
class Patience:
    """For how many seconds in a row a provider may fail, before the rounds end.

    `outage` is for what may pass, `account` for a key or an account that is refused, and `look` for
    other refusals to show a batch that was there before. What else is refused ends the rounds.
    """

    outage: float = 3_600.0
    account: float = 0.0
    look: float = 0.0


# Somebody sees how the rounds end, and can begin them again.
ATTENDED = Patience()

# A job that has ended does not go on, and what was paid for it would be lost.
UNATTENDED = Patience(outage=math.inf, account=math.inf, look=3_600.0)

# The files of one batch that are noted to be deleted: it has three, and some may come late.
# A provider that lies may name others whenever it is asked; those beyond are not noted.
_MOST_LEFT = 100


@dataclass(slots=True)
class _Record:
    """What is known of a batch at its provider; times are in seconds since the epoch.

    It was tried to upload the file, and to create the batch, where these are true. The file was
    uploaded `again` where nobody had heard of the first. `attempt` counts the batches that failed
    whole, and `unanswered` the creations without a response since then. What came of the creation
    was `unusable`, so that there may be a batch of which nobody knows the id. `since` is when the
    batch was created, `full_since` when the provider's queue was full first. A batch is `stopped`
    that was cancelled from here. `left` are the files that are still at the provider when it is
    over.
    """

    uploading: bool = False
    again: bool = False
    file: str | None = None
    creating: bool = False
    unanswered: int = 0
    unusable: bool = False
    batch: str | None = None
    attempt: int = 0
    since: float | None = None
    full_since: float | None = None
    stopped: bool = False
    left: list[str] = field(default_factory=list)


class Sending:
    """Brings the batch of one file on its way, by small steps."""

    def __init__(
        self,
        file: BatchFile,
        api: BatchClient,
        poll_s: float,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        patience: Patience = ATTENDED,
        free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        """`poll_s` are the seconds between two looks at it; `now` is in seconds since the epoch.

        `free_bytes` tells how much of the disk with a folder is free. Raises `Damaged`.
        """
        self.file, self.done = file, 0
        self._free_bytes = free_bytes
        self._api, self._poll_s, self._clock, self._now = api, poll_s, clock, now
        self._patience = patience
        with undamaged(file.record):
            self._record = _Record(**_read(file.record))
        self._at = clock() + (self._settle_s if self._record.creating else 0.0)
        self._looks = 0
        self._failures = 0
        self._refusal: str | None = None
        self._well_at = clock()

    @property
    def made(self) -> bool:
        """Whether the batch is at its provider, or may be, or was."""
        return self._record.batch is not None or self._record.creating or self.over

    @property
    def unclear(self) -> bool:
        """Whether it may have been created, and nobody knows its id."""
        return self._record.creating and self._record.batch is None

    @property
    def over(self) -> bool:
        """Whether the results are in the book."""
        return self.file.replies.exists()

    @property
    def cleared(self) -> bool:
        """Whether it is over, and nothing of it is left at the provider."""
        return self.over and not self.file.record.exists()

    @property
    def fails(self) -> bool:
        """Whether the provider failed when it was asked last."""
        return self._failures > 0

    @property
    def refusal(self) -> str | None:
        """Why the provider refused what it was asked last, None where it did not."""
        return self._refusal if self.fails else None

    def step(self) -> None:
        """Do what is due. Raises `RoundsEnd` where the provider refuses it for good."""
        if self._clock() < self._at or self.cleared:
            return
        self._at = self._clock() + self._poll_s
        if self.over:
            self._clear()
            return
        try:
            if self._record.batch is None:
                self._send()
            else:
                self._look(self._api.look(self._record.batch))
        except ProviderError as error:
            self._bear(error)
        else:
            self._failures, self._well_at = 0, self._clock()

    def give_up(self, since: float = 0.0) -> bool:
        """Have the provider carry out no more of it and delete its files; whether that is done.

        `since` is when its job was given up. What had no response then is looked for a while.
        """
        try:
            ended = self.over or self._ended(since)
        except ProviderError:
            # What is known to be left can go, though the batch cannot be looked at now.
            self._delete_left()
            return False
        if ended:
            self._clear()
        return ended and not self.file.record.exists()

    @property
    def _name(self) -> str:
        return f"{self.file.name}-{self._record.attempt}"

    @property
    def _settle_s(self) -> float:
        """How long after a lost response a creation may still take place."""
        return float(min(5.0, self._poll_s) * LONGER ** max(0, self._record.unanswered - 1))

    def _save(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self._record, name, value)
        write_json(self.file.record, asdict(self._record))

    def _send(self) -> None:
        batch = self._lost() if self._record.creating else None
        if batch is None and self._record.creating and self._looks < LOOKS:
            self._at = self._clock() + self._settle_s
            return
        if batch is None and (self._record.unusable or self._record.unanswered >= CREATIONS):
            many = self._record.unanswered
            replies = "its reply" if many == 1 else f"each of {many} replies"
            raise RoundsEnd(
                f"provider {self.file.provider} may have created batch {self._name}, but {replies} "
                "was lost or could not be read, and its list does not have it"
            )
        if batch is None:
            batch = self._create(self._uploaded())
        self._save(batch=batch.id)

    def _lost(self) -> RemoteBatch | None:
        found = self._api.find(self._name)
        self._looks += 1
        return found

    def _uploaded(self) -> str:
        """The id of the file at the provider."""
        if self._record.file is None:
            found = self._uploaded_before()
            again = self._record.again or (self._record.uploading and found is None)
            self._save(uploading=True, again=again, since=self._now())
            calls = self.file.lines_of_calls()
            self._save(file=found or self._api.upload(self._file_name, self.file.size, calls))
        assert self._record.file is not None
        return self._record.file

    @property
    def _file_name(self) -> str:
        return f"{self.file.name}.jsonl"

    def _uploaded_before(self) -> str | None:
        """The id of the file where it may be at the provider, and nobody has heard of it."""
        named = self._api.files_named(self._file_name) if self._record.uploading else ()
        return next(iter(named), None)

    def _create(self, file_id: str) -> RemoteBatch:
        before = self._record.unanswered
        # Counted before, since the process may end meanwhile.
        self._save(creating=True, unanswered=before + 1, since=self._now())
        self._looks = 0
        try:
            return self._api.create(file_id, self._name, self.file.model)
        except ProviderError as error:
            unclear = isinstance(error, _UNCLEAR)
            self._save(
                creating=unclear,
                unanswered=before + unclear,
                unusable=isinstance(error, BadReply),
                since=self._now(),
            )
            raise

    def _look(self, batch: RemoteBatch) -> None:
        self.done = min(batch.done, self.file.lines)
        if batch.state is State.RUNNING:
            self._mind_window(batch)
        elif batch.state is State.FAILED and not batch.files:
            self._failed(batch)
        else:
            self._enter(batch)
            self._clear()
            if batch.state is State.CANCELLED and not self._record.stopped:
                raise RoundsEnd(
                    f"batch {self._name} was cancelled at provider {self.file.provider}"
                )

    def _mind_window(self, batch: RemoteBatch) -> None:
        """Cancel a batch that has not ended long after its window, which has it ended at last."""
        late_s = self._now() - (self._record.since or self._now()) - WINDOW_HOURS * 3_600
        if late_s > 2 * GRACE_S:
            raise RoundsEnd(
                f"provider {self.file.provider} has not ended batch {self._name}, whose "
                f"{WINDOW_HOURS} hours are over, and not cancelled it either"
            )
        if late_s > GRACE_S:
            self._stop(batch.id)

    def _stop(self, batch_id: str) -> None:
        if not self._record.stopped:
            self._save(stopped=True)
        # It may have ended at this very moment.
        with suppress(ProviderError):
            self._api.cancel(batch_id)

    def _failed(self, batch: RemoteBatch) -> None:
        """Nothing of it was carried out, so that another batch takes its place."""
        is_full = bool(batch.codes) and _FULL.issuperset(batch.codes)
        full_since = (self._record.full_since or self._now()) if is_full else None
        too_long = full_since is not None and self._now() - full_since > FULL_PATIENCE_S
        self._save(
            batch=None,
            creating=False,
            unanswered=0,
            unusable=False,
            attempt=self._record.attempt + 1,
            full_since=None if too_long else full_since,
        )
        if too_long:
            raise RoundsEnd(
                f"the queue of provider {self.file.provider} was full for "
                f"{FULL_PATIENCE_S / 3_600:g} hours"
            )
        if is_full:
            self._at = self._clock() + max(self._poll_s, _FULL_WAIT_S)
            return
        # Others are words of the provider's, which callers would read.
        codes = sorted(_CODES.intersection(batch.codes))
        why = f" ({', '.join(codes)})" if codes else ""
        raise RoundsEnd(f"provider {self.file.provider} refused batch {self._name}{why}")

    def _ended(self, since: float) -> bool:
        """Cancel the batch, wherever it is on its way; whether it has ended.

        What it has left at the provider is known then. Raises `ProviderError`.
        """
        record, files = self._record, list[str]()
        age_s = self._now() - max(since, record.since or 0.0)
        if self.unclear:
            found = self._lost()
            if found is None and age_s < CREATED_WITHIN_S:
                return False
            self._save(batch=found.id if found else None, creating=False)
        if record.batch is not None:
            with suppress(Gone):
                batch = self._api.look(record.batch)
                if batch.state is State.RUNNING:
                    self._stop(batch.id)
                    batch = self._api.look(batch.id)
                if batch.state is State.RUNNING:
                    return False
                files += batch.files
        uploaded = record.file or self._uploaded_before()
        if record.uploading and not uploaded and age_s < CREATED_WITHIN_S:
            return False
        self._leave(*files, uploaded)
        return True

    def _bear(self, error: ProviderError) -> None:
        """Wait after a failure that may pass. Raises `RoundsEnd` for any other."""
        gone = "it has no such batch, file or path"
        words = gone if isinstance(error, Gone) else error.as_api_error().message
        if self._clock() - self._well_at >= self._borne_s(error):
            raise RoundsEnd(f"the batches of provider {self.file.provider}: {words}") from None
        self._refusal = None if isinstance(error, _PASSING) else words
        self._put_off(error.retry_after)

    def _borne_s(self, error: ProviderError) -> float:
        """For how long in a row such failures are borne."""
        if isinstance(error, _PASSING):
            return self._patience.outage
        if isinstance(error, (KeyRefused, NoCredit)):
            return self._patience.account
        return 0.0 if self._record.batch is None else self._patience.look

    def _put_off(self, seconds: float | None = None) -> None:
        """Try again after so many seconds, by default after longer and longer pauses."""
        self._failures += 1
        wait_s = min(_LONGEST_WAIT_S, self._poll_s * 2.0 ** min(self._failures, 20))
        self._at = self._clock() + (min(seconds, _LONGEST_WAIT_S) if seconds else wait_s)

    def _enter(self, batch: RemoteBatch) -> None:
        """Put the results into the book, with a line for each call that has none."""
        calls = map(_CALL.match, self.file.lines_of_calls())
        missing = {match[1].decode() for match in calls if match}
        # Before the results are there, so that what is left is known when they are.
        self._leave(self._record.file, *batch.files)
        with whole(self.file.replies) as replies:
            for file_id in batch.files:
                for result in downloaded(self._api, file_id, self.file.lines, self._name):
                    if result.call in missing:
                        missing.remove(result.call)
                        self._leave_room()
                        replies.write(self._line(result))
            for call in sorted(missing):
                replies.write(self._line(Result(call)))

    def _leave_room(self) -> None:
        """Raise `OSError` where little of the disk is free, which others need."""
        if self._free_bytes(self.file.folder) < limits.LEFT_BY_RESULTS_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _line(self, result: Result) -> bytes:
        sealed = self.file.sealing.seal(label(result.call, result.status), result.body)
        return b"%s %d %s\n" % (result.call.encode(), result.status, sealed)

    def _clear(self) -> None:
        """Delete the files, here and at the provider, of which the book now has what counts."""
        self.file.calls.unlink(missing_ok=True)
        if self._record.again:
            self._look_for_late()
        self._delete_left()
        if not self._record.left and not self._record.again:
            self.file.record.unlink(missing_ok=True)
        else:
            self._put_off()

    def _delete_left(self) -> None:
        """Delete the files at the provider that are noted, and note those that it would not."""
        left = [one for one in self._record.left if not self._is_deleted(one)]
        if left != self._record.left:
            self._save(left=left)

    def _leave(self, *files: str | None) -> None:
        """Note files that are to be deleted at the provider, beside those that are noted."""
        left = list(dict.fromkeys(filter(None, (*self._record.left, *files))))[:_MOST_LEFT]
        if left != self._record.left:
            self._save(left=left)

    def _look_for_late(self) -> None:
        """Note the files that came to be after another took their place, once no more can."""
        if self._now() - (self._record.since or 0.0) < CREATED_WITHIN_S:
            return
        with suppress(ProviderError):
            self._leave(*self._api.files_named(self._file_name))
            self._save(again=False)

    def _is_deleted(self, file_id: str) -> bool:
        try:
            self._api.delete(file_id)
        except Gone:
            return True
        except ProviderError:
            return False
        return True


def readable(batches: Iterable[BatchFile], apis: Mapping[str, BatchClient]) -> list[Sending | None]:
    """The batches, None for one of which it is not known how far it was sent, or of others."""
    return [_readable(one, apis.get(one.provider)) for one in batches]


def _readable(batch: BatchFile, api: BatchClient | None) -> Sending | None:
    try:
        return None if api is None else Sending(batch, api, 0.0)
    except Damaged:
        return None


def _read(path: Path) -> JsonObject:
    record: JsonObject = json.loads(path.read_bytes()) if path.exists() else {}
    return record
