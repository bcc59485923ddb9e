"""A trace that keeps what it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from svc.tracing import Attributes, Kind


class Recorder:
    """A trace and a span that keeps what it is told, with its parts."""

    def __init__(self, name: str = "", facts: Attributes | None = None) -> None:
        self.name, self.facts = name, dict(facts or {})
        self.parts: list[Recorder] = []
        # What was done later, in traces of their own.
        self.linked: list[Recorder] = []
        self.error: type[BaseException] | None = None
        self.ended = False
        self.headers = {"traceparent": f"of {name}"}

    @contextmanager
    def part(self, name: str, kind: Kind, attributes: Attributes) -> Iterator[Recorder]:
        span = Recorder(name, attributes)
        self.parts.append(span)
        try:
            yield span
        except BaseException as error:
            span.error = type(error)
            raise
        finally:
            span.ended = True

    def aside(self) -> Recorder:
        self.linked.append(Recorder(f"after {self.name}"))
        return self.linked[-1]

    def tell(self, attributes: Attributes) -> None:
        self.facts.update(attributes)
