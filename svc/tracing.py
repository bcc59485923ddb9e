"""What traces are to whom they pass through: spans of what is done for a request, and their parts.

Nothing here knows where spans go, see `svc.telemetry`. Where nobody traces there is no span at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from enum import Enum, auto
from typing import Protocol

# What is told of a span, by the names of its attributes. No text of a request, and no secret.
Attributes = Mapping[str, str | int | float | bool]


class Kind(Enum):
    """What a span is to other programs: asked by one, asking one, or neither."""

    SERVER = auto()
    CLIENT = auto()
    INTERNAL = auto()


class Trace(Protocol):
    """Where spans of one request go."""

    def part(
        self, name: str, kind: Kind, attributes: Attributes
    ) -> AbstractContextManager[Span, None]:
        """A span that begins now and ends with the block; of an exception it tells the type.

        The type is that which callers read of an `ApiError`, and else the name of its class.
        """


class Span(Trace, Protocol):
    """Something under way; its parts are below it."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by which another server puts what it does below this span."""

    def aside(self) -> Trace:
        """Where spans go of what is done later on: in traces of their own, linked to this span."""

    def tell(self, attributes: Attributes) -> None:
        """Add what became known while it was under way."""


class Traces(Trace, Protocol):
    """Where all spans of a process go; those directly below it begin a trace of their own."""

    def of(self, traceparent: str) -> Trace:
        """The trace that a request's header of this name says; its own where it says none."""

    def close(self) -> None:
        """Send what has ended, as far as that takes little time."""
