"""What is learnt about single models by asking them, over all processes of a server.

A model shows which fields it refuses, how many alternatives it gives, whether it needs room to
think, and in which way it can be asked at all. The ways form two ladders, best first:

    label ways   LINES    all questions in one call, one label a line
                 SINGLE   each label in a call of its own
    JSON ways    SCHEMA   one reply bound to a strict JSON schema
                 OBJECT   one reply bound to be some JSON object
                 WORDS    JSON asked for in words alone

The way that worked is remembered with the reason why the one above it did not, and the top is
tried again now and then: a server is updated, and one odd reply must not decide for ever.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

from svc.sharing import ProcessLock

SLOTS = 16_384  # models at once; callers choose ids, so memory must end somewhere
FIRST_RETRY = 25  # asks after which the top of a ladder is tried again for the first time
LAST_RETRY = 400  # the wait doubles up to this many asks
MISSES = 3  # failures in a row before a way that has worked is given up
FORGET_S = 3_600.0  # after which fields and limits that were refused are tried again
REQUIRE_PARAMETERS = "require_parameters"  # inside the aggregator's `provider`
REASONING_OFF = "reasoning.effort"  # the aggregator's effort `none`
OBJECT_SCHEMA = "response_format.schema"  # beside the type json_object
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
_PROBES = 32  # slots that a model may stand in
_HEAD = struct.Struct("=Qd")  # digest, last written (seconds)
# Fields learnt (seconds), refused fields, alternatives, output limit, least output limit, room to
# think, and twice: rung, reason, misses, proven ways, asks since the last try, asks until the next.
_TRAITS = struct.Struct("=dIHIHB" + "BBBBHH" * 2)
_RECORD = struct.Struct(_HEAD.format + _TRAITS.format[1:])


class Way(IntEnum):
    """A way of asking a model."""

    LINES = 0
    SINGLE = 1
    SCHEMA = 2
    OBJECT = 3
    WORDS = 4
    DECISION = 5  # the model is a decision server and has this way alone


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
    """Where a model stands on one of the two ladders."""

    index: int = 0  # of the way in use; the ladder's length where none works
    reason: Reason = Reason.NONE
    misses: int = 0  # asks in a row in which the way in use failed
    proven: int = 0  # a bit for each way that has ever worked
    asks: int = 0  # since the top was tried last
    patience: int = FIRST_RETRY  # asks until it is tried again

    def settled(self, worked: int) -> bool:
        """Whether an ask in which this way worked at once changes nothing."""
        return self.index == 0 and bool(self.proven >> worked & 1) and not self.misses

    @property
    def due(self) -> bool:
        """Whether the next ask is to begin at the top again."""
        return self.index > 0 and self.asks + 1 >= self.patience

    def after(self, failed: Sequence[int], worked: int, reason: Reason) -> Rung:
        """The rung after an ask in which the ways `failed`, in this order, and then one worked.

        `worked` is the ladder's length where an answer came from below it. A way that was not
        tried, because the ask had but one label, is not blamed.
        """
        proven = self.proven | 1 << worked
        if worked < self.index:
            return Rung(worked, reason if failed else Reason.NONE, proven=proven)
        if worked > self.index and not failed:
            return replace(self, proven=proven)  # the way in use was not tried
        if worked > self.index:
            relied_on = any(self.proven >> way & 1 for way in failed)
            if relied_on and self.misses + 1 < MISSES:
                return replace(self, misses=self.misses + 1)
            return Rung(worked, reason, proven=proven)
        if failed:  # the top was tried again, in vain
            patience = min(LAST_RETRY, 2 * self.patience)
            return replace(self, misses=0, proven=proven, asks=0, patience=patience)
        return replace(self.waited(), misses=0, proven=proven)

    def waited(self) -> Rung:
        """The rung after one more ask that did not begin at the top."""
        return replace(self, asks=min(LAST_RETRY, self.asks + 1)) if self.index else self


TOP = Rung()


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of one model; nothing at first."""

    refused: frozenset[str] = frozenset()  # names out of `FIELDS`
    top_logprobs: int = 0  # alternatives it gives at most; 0 while it takes what is asked
    most_tokens: int = 0  # the largest output limit it takes; 0 while none was refused
    least_tokens: int = 0  # the smallest output limit it takes
    thinks: bool = False  # whether it needs room to think before it answers
    labels: Rung = TOP
    json: Rung = TOP
    learnt_at: float = 0.0  # when anything but the rungs was learnt last, on the memory's clock

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

    `lasting` is the part that holds for every call. It is remembered once a call that was so
    corrected succeeded: a provider may blame a field for what is wrong with the content.
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

    Writing takes a lock, reading none: what is read while another process writes may mix two
    states of a model, which costs one call at most.
    """

    def __init__(self, slots: int = SLOTS, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` has to be the same for all processes."""
        self._slots, self._clock = slots, clock
        self._memory = mmap.mmap(-1, slots * _RECORD.size)
        self._processes, self._threads = ProcessLock(), threading.Lock()

    def of(self, model_id: str) -> Traits:
        """What is known of the model."""
        at, known = self._find(_digest(model_id))
        return self._read(at) if known else UNKNOWN

    def change(self, model_id: str, change: Callable[[Traits], Traits]) -> None:
        """Replace what is known of the model; `change` makes the new traits from the old ones."""
        digest = _digest(model_id)
        with self._threads, self._processes:
            at, known = self._find(digest)
            old = self._read(at) if known else UNKNOWN
            new = change(old)
            if new != old:
                _RECORD.pack_into(self._memory, at, digest, self._clock(), *_packed(new))

    def learn(self, model_id: str, correction: Traits) -> None:
        """Remember refusals and bounds, for `FORGET_S` seconds."""
        now = self._clock()
        self.change(model_id, lambda old: replace(old.corrected(correction), learnt_at=now))

    def needs_room(self, model_id: str) -> None:
        """Remember that the model thinks before it answers, for `FORGET_S` seconds."""
        now = self._clock()
        self.change(model_id, lambda old: replace(old, thinks=True, learnt_at=now))

    def close(self) -> None:
        """Let go of it in this process."""
        self._processes.close()
        self._memory.close()

    def _read(self, at: int) -> Traits:
        traits = _unpacked(self._memory[at + _HEAD.size : at + _RECORD.size])
        if traits.learnt_at and self._clock() - traits.learnt_at > FORGET_S:
            return Traits(labels=traits.labels, json=traits.json)
        return traits

    def _find(self, digest: int) -> tuple[int, bool]:
        """Where the model stands, or the place that a new one takes; and which of the two."""
        oldest, oldest_at = float("inf"), 0
        for probe in range(_PROBES):
            at = (digest + probe) % self._slots * _RECORD.size
            held, written = _HEAD.unpack_from(self._memory, at)
            if held == digest:
                return at, True
            if held == 0:
                return at, False
            if written < oldest:
                oldest, oldest_at = written, at
        return oldest_at, False


@lru_cache(maxsize=1_024)
def _digest(model_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(model_id.encode(), digest_size=8).digest()) or 1


def _packed(traits: Traits) -> tuple[float, ...]:
    bits = sum(1 << index for index, name in enumerate(FIELDS) if name in traits.refused)
    rungs = [
        part
        for rung in (traits.labels, traits.json)
        for part in (rung.index, rung.reason, rung.misses, rung.proven, rung.asks, rung.patience)
    ]
    limits = (traits.top_logprobs, traits.most_tokens, traits.least_tokens)
    return (traits.learnt_at, bits, *limits, traits.thinks, *rungs)


@lru_cache(maxsize=1_024)  # most models have the same few traits, and every call reads them
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
