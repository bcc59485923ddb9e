"""Spans as workers record them: plain values, without OpenTelemetry.

To make one of OpenTelemetry's spans costs far more than to record what it says. So a worker only
records it, and the process that exports makes OpenTelemetry's span of the record, see `Ended`.
Even the record is not made while the request waits, but later, by the thread that passes it on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import getrandbits
from time import time_ns
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

from svc.errors import ApiError
from svc.telemetry.sampling import SAMPLED, Sampling
from svc.tracing import Attributes, Kind, Trace

# The bit of a header's flags that says that its trace's id is random. Ids that are made here are.
RANDOM = 2

_HEADER = re.compile(r"[ \t]*([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?[ \t]*")
# Longer ones are not looked at.
_HEADER_CHARS = 512

# The fields of `Ended` as a plain tuple of values that `marshal` takes.
Record: TypeAlias = tuple[Any, ...]


class Ended(NamedTuple):
    """A span that has ended. `trace`, `id` and `parent` are ids, 0 where there is no parent.

    `remote` says that the parent is a caller's. `linked` are trace, id and flags of a span to
    which this one has a link. Times are in nanoseconds since 1970.
    """

    name: str
    kind: str
    trace: int
    id: int
    parent: int
    remote: bool
    flags: int
    linked: tuple[int, int, int] | None
    began: int
    ended: int
    failed: bool
    attributes: dict[str, str | int | float | bool]


class OwnTraces:
    """`svc.tracing.Traces` without `close`: `take` gets each span when it has ended."""

    __slots__ = ("_linked", "_sampling", "_take")

    def __init__(
        self,
        take: Callable[[OwnSpan], None],
        sampling: Sampling,
        linked: tuple[int, int, int] | None = None,
    ) -> None:
        """Traces that begin here have a link to the span with the ids and flags of `linked`."""
        self._take, self._sampling, self._linked = take, sampling, linked

    def part(self, name: str, kind: Kind, attributes: Attributes) -> OwnSpan | UnsampledSpan:
        trace = getrandbits(128) or 1
        if not self._sampling.takes(trace):
            return UnsampledSpan(trace, RANDOM)
        place = (trace, 0, False, RANDOM | SAMPLED, self._linked)
        return OwnSpan(self, self._take, place, name, kind, attributes)

    def of(self, traceparent: str) -> Trace:
        """See `svc.tracing.Traces`. A malformed header counts as none."""
        found = traceparent and len(traceparent) <= _HEADER_CHARS and _HEADER.fullmatch(traceparent)
        if not found:
            return self
        version, trace, parent, flags, more = found.groups()
        forbidden = version == "ff" or (version == "00" and more)
        if forbidden or not int(trace, 16) or not int(parent, 16):
            return self
        return CallersTrace(self, int(trace, 16), int(parent, 16), int(flags, 16))

    def below(
        self, trace: int, parent: int, flags: int, name: str, kind: Kind, attributes: Attributes
    ) -> OwnSpan | UnsampledSpan:
        """A span whose parent is a caller's."""
        random = flags & RANDOM
        if not self._sampling.takes_below(trace, flags):
            return UnsampledSpan(trace, random)
        place = (trace, parent, True, random | SAMPLED, None)
        return OwnSpan(self, self._take, place, name, kind, attributes)

    def beside(self, trace: int, span: int, flags: int) -> OwnTraces:
        """Where traces begin that have a link to a span."""
        return OwnTraces(self._take, self._sampling, (trace, span, flags))


class CallersTrace:
    """A trace that a caller began; see `svc.tracing.Trace`."""

    __slots__ = ("_flags", "_parent", "_trace", "_traces")

    def __init__(self, traces: OwnTraces, trace: int, parent: int, flags: int) -> None:
        self._traces, self._trace, self._parent, self._flags = traces, trace, parent, flags

    def part(self, name: str, kind: Kind, attributes: Attributes) -> OwnSpan | UnsampledSpan:
        where = (self._trace, self._parent, self._flags)
        return self._traces.below(*where, name, kind, attributes)


class OwnSpan:
    """See `svc.tracing.Span`. It begins when it is made, and ends when its block is left."""

    __slots__ = (
        *("_attributes", "_began", "_ended", "_failed", "_id", "_kind", "_name", "_place"),
        *("_take", "_traces"),
    )

    def __init__(
        self,
        traces: OwnTraces,
        take: Callable[[OwnSpan], None],
        place: tuple[int, int, bool, int, tuple[int, int, int] | None],
        name: str,
        kind: Kind,
        attributes: Attributes,
    ) -> None:
        """`place` holds the fields of `Ended` from `trace` to `linked`, without `id`."""
        self._traces, self._take, self._place = traces, take, place
        self._name, self._kind, self._attributes = name, kind, dict(attributes)
        self._id, self._failed = getrandbits(64) or 1, False
        self._began = self._ended = time_ns()

    def __enter__(self) -> OwnSpan:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            # The message and the traceback may quote a state.
            self._attributes["error.type"] = (
                error.type if isinstance(error, ApiError) else kind.__name__
            )
            self._failed = True
        self._ended = time_ns()
        self._take(self)

    def record(self) -> Record:
        """What there is to pass on once it has ended."""
        trace, *place = self._place
        return (
            *(self._name, self._kind.name, trace, self._id, *place),
            *(self._began, self._ended, self._failed, self._attributes),
        )

    @property
    def headers(self) -> Mapping[str, str]:
        trace, _, _, flags, _ = self._place
        return _headers(trace, self._id, flags)

    def part(self, name: str, kind: Kind, attributes: Attributes) -> OwnSpan:
        trace, _, _, flags, _ = self._place
        place = (trace, self._id, False, flags, None)
        return OwnSpan(self._traces, self._take, place, name, kind, attributes)

    def aside(self) -> Trace:
        trace, _, _, flags, _ = self._place
        return self._traces.beside(trace, self._id, flags)

    def tell(self, attributes: Attributes) -> None:
        self._attributes.update(attributes)


class UnsampledSpan:
    """See `svc.tracing.Span`. Nothing of it is recorded, but providers get its ids all the same."""

    __slots__ = ("headers",)

    def __init__(self, trace: int, flags: int) -> None:
        self.headers: Mapping[str, str] = _headers(trace, getrandbits(64) or 1, flags)

    def __enter__(self) -> UnsampledSpan:
        return self

    def __exit__(self, *_: object) -> None:
        """Record nothing."""

    def part(self, name: str, kind: Kind, attributes: Attributes) -> UnsampledSpan:
        return self

    def aside(self) -> Trace:
        return self

    def tell(self, attributes: Attributes) -> None:
        """Record nothing."""


def _headers(trace: int, span: int, flags: int) -> Mapping[str, str]:
    return {"traceparent": f"00-{trace:032x}-{span:016x}-{flags:02x}"}
