"""What is learnt about each model by asking it, shared by all processes of a server.

A model shows which fields it refuses, how many alternatives it gives, whether it needs room to
think, and in which way it can be asked at all. The ways form two ladders, best first:

    label ways   LINES    all questions in one call, one label a line
                 SINGLE   each label in a call of its own
    JSON ways    SCHEMA   one reply bound to a strict JSON schema
                 OBJECT   one reply bound to be any JSON object
                 WORDS    JSON requested in words alone

A model that is a decision server is asked in the way DECISION alone, which is on no ladder.

The way that worked is remembered with the reason why the one above it did not. The top is tried
again now and then, because servers are updated and one odd reply must not decide for ever.
"""

from __future__ import annotations

import hashlib
import mmap
import secrets
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

from svc.sharing import ProcessLock

# The models that are remembered at once. Callers choose their ids, so there must be a bound.
SLOTS = 16_384

# The top of a ladder is tried again after so many requests, which double up to the second figure.
FIRST_RETRY = 25
LAST_RETRY = 400

# A way that has worked is given up after so many failures in a row.
MISSES = 3

# Stands in no name of a project and in no id of a model.
_OF = "\n"

# Fields and limits that were refused are tried again after this time.
FORGET_S = 3_600.0

# Fields inside another field: of the aggregator's `provider`, of its `reasoning` (the effort
# `none`), and of a `response_format` of the type json_object.
REQUIRE_PARAMETERS = "require_parameters"
REASONING_OFF = "reasoning.effort"
OBJECT_SCHEMA = "response_format.schema"

# Everything that a model may refuse on its own; the order is that of the bits in a record.
FIELDS = (
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "reasoning",
    "thinking",
    REQUIRE_PARAMETERS,
    REASONING_OFF,
    OBJECT_SCHEMA,
)

# The slots in which a model may stand.
_PROBES = 32

# A record begins with the model's digest and the time of the last change in seconds.
_HEAD = struct.Struct("=Qd")

# Then come: the time at which fields were learnt in seconds, refused fields, alternatives, output
# limit, least output limit, whether it thinks, and for each ladder: rung, reason, misses, proven
# ways, requests since the last try of the top, requests until the next.
_TRAITS = struct.Struct("=dIHIHB" + "BBBBHH" * 2)
_RECORD = struct.Struct(_HEAD.format + _TRAITS.format[1:])


class Way(IntEnum):
    """A way of asking a model."""

    LINES = 0
    SINGLE = 1
    SCHEMA = 2
    OBJECT = 3
    WORDS = 4
    DECISION = 5


LABEL_WAYS = (Way.LINES, Way.SINGLE)
JSON_WAYS = (Way.SCHEMA, Way.OBJECT, Way.WORDS)


class Reason(IntEnum):
    """Why the ways above the one in use did not work."""

    NONE = 0
    REFUSED = 1
    UNREADABLE = 2
    NO_PROBABILITIES = 3
    CUT = 4

    @property
    def words(self) -> str:
        """The reason as users read it."""
        return _WORDS[self]


_WORDS = {
    Reason.NONE: "",
    Reason.REFUSED: "the provider refuses to be asked that way",
    Reason.UNREADABLE: "its reply could not be read",
    Reason.NO_PROBABILITIES: "it gives no usable log-probabilities",
    Reason.CUT: "its thought used up the output limit",
}


@dataclass(frozen=True, slots=True)
class Rung:
    """Where a model stands on one of the two ladders.

    `index` is that of the way in use, or the ladder's length where none works; `reason` is why the
    ways above it did not. `misses` counts the requests in a row in which the way in use failed.
    `proven` has a bit for each way that has ever worked. The top was tried last `asks` requests
    ago, and is tried again after `patience` of them.
    """

    index: int = 0
    reason: Reason = Reason.NONE
    misses: int = 0
    proven: int = 0
    asks: int = 0
    patience: int = FIRST_RETRY

    def settled(self, worked: int) -> bool:
        """Whether a request in which this way worked at once changes nothing."""
        return self.index == 0 and bool(self.proven >> worked & 1) and not self.misses

    @property
    def due(self) -> bool:
        """Whether the next request begins at the top again."""
        return self.index > 0 and self.asks + 1 >= self.patience

    def after(self, failed: Sequence[int], worked: int, reason: Reason) -> Rung:
        """The rung after a request in which the ways `failed`, in this order, and then one worked.

        `worked` is the ladder's length where an answer came from below it. A way that was not
        tried, because the request had only one label, does not count as failed.
        """
        proven = self.proven | 1 << worked
        if worked < self.index:
            return Rung(worked, reason if failed else Reason.NONE, proven=proven)
        if worked > self.index and not failed:
            # The way in use was not tried.
            return replace(self, proven=proven)
        if worked > self.index:
            relied_on = any(self.proven >> way & 1 for way in failed)
            if relied_on and self.misses + 1 < MISSES:
                return replace(self, misses=self.misses + 1)
            return Rung(worked, reason, proven=proven)
        if failed:
            # The top was tried again and failed.
            return replace(self.put_off(), misses=0, proven=proven)
        return replace(self.waited(), misses=0, proven=proven)

    def put_off(self) -> Rung:
        """The rung after a request that began at the top again in vain."""
        return replace(self, asks=0, patience=min(LAST_RETRY, 2 * self.patience))

    def waited(self) -> Rung:
        """The rung after one more request that did not begin at the top."""
        return replace(self, asks=min(LAST_RETRY, self.asks + 1)) if self.index else self


TOP = Rung()


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of one model; nothing at first.

    `refused` holds names of `FIELDS`. `top_logprobs` is the most alternatives that the model gives,
    and `most_tokens` and `least_tokens` bound its output limit; each is 0 while no bound is known.
    `thinks` says that it needs tokens for thought before it answers. `learnt_at` is when anything
    but the rungs was learnt last, on the clock of the memory.
    """

    refused: frozenset[str] = frozenset()
    top_logprobs: int = 0
    most_tokens: int = 0
    least_tokens: int = 0
    thinks: bool = False
    labels: Rung = TOP
    json: Rung = TOP
    learnt_at: float = 0.0

    def corrected(self, correction: Traits) -> Traits:
        """These traits with the refusals and bounds of `correction`, which win."""
        return replace(
            self,
            refused=self.refused | correction.refused,
            top_logprobs=correction.top_logprobs or self.top_logprobs,
            most_tokens=correction.most_tokens or self.most_tokens,
            least_tokens=correction.least_tokens or self.least_tokens,
        )


UNKNOWN = Traits()


@dataclass(frozen=True, slots=True)
class Corrections:
    """What one call leaves out or bounds because a provider refused it before.

    `lasting` is the part that holds for every call. It is remembered only after a call with these
    corrections succeeded, because a provider may blame a field for what is wrong with the content.
    """

    all: Traits = UNKNOWN
    lasting: Traits = UNKNOWN

    def plus(self, correction: Traits, lasting: bool) -> Corrections:
        """With one more correction."""
        kept = self.lasting.corrected(correction) if lasting else self.lasting
        return Corrections(self.all.corrected(correction), kept)


NO_CORRECTIONS = Corrections()


class TraitMemory:
    """The traits of models by their full ids; processes forked after this was made share it.

    Writing takes a lock, but reading does not. What is read while another process writes may mix
    two states of a model, which costs one call at most.
    """

    def __init__(self, slots: int = SLOTS, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` must be the same for all processes."""
        self._slots, self._clock = slots, clock
        self._memory = mmap.mmap(-1, slots * _RECORD.size)
        # Else callers could choose names whose records take the places of others.
        self._secret = secrets.token_bytes(16)
        self._processes, self._threads = ProcessLock(), threading.Lock()

    def of(self, model_id: str) -> Traits:
        """What is known of the model, or of the way in which a project asks it, see `asked_by`."""
        offset, known = self._find(_digest(self._secret, model_id))
        return self._read(offset) if known else UNKNOWN

    def in_project(self, model_id: str, project: str) -> Traits:
        """All that is known of the model where this project asks it."""
        own = self.of(asked_by(project, model_id))
        return replace(self.of(model_id), thinks=own.thinks, labels=own.labels, json=own.json)

    def is_known(self, model_id: str, project: str) -> bool:
        """Whether anything is known of the way in which this project asks the model."""
        return self.of(asked_by(project, model_id)) != UNKNOWN

    def change(self, model_id: str, change: Callable[[Traits], Traits]) -> None:
        """Replace what is known of the model; `change` makes the new traits from the old ones."""
        digest = _digest(self._secret, model_id)
        with self._threads, self._processes:
            offset, known = self._find(digest)
            old = self._read(offset) if known else UNKNOWN
            new = change(old)
            if new != old:
                _RECORD.pack_into(self._memory, offset, digest, self._clock(), *_packed(new))

    def learn(self, model_id: str, correction: Traits) -> None:
        """Remember refusals and bounds, for `FORGET_S` seconds."""
        self.change(
            model_id, lambda old: replace(old.corrected(correction), learnt_at=self._clock())
        )

    def needs_room(self, model_id: str) -> None:
        """Remember that the model thinks before it answers, for `FORGET_S` seconds."""
        self.change(model_id, lambda old: replace(old, thinks=True, learnt_at=self._clock()))

    def close(self) -> None:
        """Release the memory in this process."""
        self._processes.close()
        self._memory.close()

    def _read(self, offset: int) -> Traits:
        traits = _unpacked(self._memory[offset + _HEAD.size : offset + _RECORD.size])
        if traits.learnt_at and self._clock() - traits.learnt_at > FORGET_S:
            return Traits(labels=traits.labels, json=traits.json)
        return traits

    def _find(self, digest: int) -> tuple[int, bool]:
        """The offset of the model's record, or of the one it would take; whether it is there."""
        oldest_at, oldest_offset = float("inf"), 0
        for probe in range(_PROBES):
            offset = (digest + probe) % self._slots * _RECORD.size
            slot_digest, written_at = _HEAD.unpack_from(self._memory, offset)
            if slot_digest == digest:
                return offset, True
            if slot_digest == 0:
                return offset, False
            if written_at < oldest_at:
                oldest_at, oldest_offset = written_at, offset
        return oldest_offset, False


def asked_by(project: str, model_id: str) -> str:
    """The name under which it is kept in which ways a project asks a model.

    Whether a way works shows in what the model answers, which callers may have it say. So this is
    of one project alone. What a provider itself refuses is kept under the id of the model, for all.
    """
    return f"{project}{_OF}{model_id}"


def model_of(name: str) -> str:
    """The id of the model in a name that `asked_by` made, or that is no more than the id."""
    return name.rpartition(_OF)[2]


@lru_cache(maxsize=1_024)
def _digest(secret: bytes, model_id: str) -> int:
    digest = hashlib.blake2b(model_id.encode(), digest_size=8, key=secret).digest()
    return int.from_bytes(digest) or 1


def as_text(traits: Traits) -> str:
    """Traits as a text that `from_text` reads."""
    return _TRAITS.pack(*_packed(traits)).hex()


def from_text(text: str) -> Traits:
    """The traits that `as_text` wrote. Raises `ValueError` for any other text."""
    try:
        return _unpacked(bytes.fromhex(text))
    except struct.error as error:
        raise ValueError(str(error)) from None


def _packed(traits: Traits) -> tuple[float, ...]:
    bits = sum(1 << index for index, name in enumerate(FIELDS) if name in traits.refused)
    rungs = [
        part
        for rung in (traits.labels, traits.json)
        for part in (rung.index, rung.reason, rung.misses, rung.proven, rung.asks, rung.patience)
    ]
    limits = (traits.top_logprobs, traits.most_tokens, traits.least_tokens)
    return (traits.learnt_at, bits, *limits, traits.thinks, *rungs)


# Every call reads traits, and most models have the same few.
@lru_cache(maxsize=1_024)
def _unpacked(traits: bytes) -> Traits:
    learnt_at, bits, alternatives, most, least, thinks, *rungs = _TRAITS.unpack(traits)
    return Traits(
        frozenset(name for index, name in enumerate(FIELDS) if bits >> index & 1),
        alternatives,
        most,
        least,
        bool(thinks),
        _rung(rungs[:6]),
        _rung(rungs[6:]),
        learnt_at,
    )


def _rung(parts: Sequence[int]) -> Rung:
    index, reason, misses, proven, asks, patience = parts
    return Rung(index, Reason(reason), misses, proven, asks, patience)
