"""The results of a block's rows, which wait in a file for those of the blocks before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from svc.batch import Kind, Result
from svc.bulk.durable import PART


class Answered:
    """Results in the order of their rows; rows that still want a reply are left out."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "answered"

    def forget(self) -> None:
        """Delete what an earlier process has left."""
        self._path.unlink(missing_ok=True)

    def __iter__(self) -> Iterator[Result]:
        with self._path.open(encoding="utf-8") as file:
            for text in file:
                _, kind, data, *others = json.loads(text)
                yield Result(Kind(kind), data.encode(), *others)

    @contextmanager
    def renewed(self) -> Iterator[Renewed]:
        """The results to carry over and to add to; they are all there after the block."""
        part = self._path.with_name(self._path.name + PART)
        with ExitStack() as stack:
            self._path.touch()
            before = stack.enter_context(self._path.open(encoding="utf-8"))
            yield Renewed(before, stack.enter_context(part.open("w", encoding="utf-8")))
        part.replace(self._path)


class Renewed:
    """Goes over the rows of a block once more."""

    def __init__(self, before: TextIO, after: TextIO) -> None:
        self._before, self._after = before, after
        self._next = before.readline()

    def has(self, row: int) -> bool:
        """Whether the row has its result, which is carried over then."""
        found = self._next.startswith(f"[{row},")
        if found:
            self._after.write(self._next)
            self._next = self._before.readline()
        return found

    def add(self, row: int, one: Result) -> None:
        """Write the result of a row, which comes after all rows before it."""
        fields = [row, one.kind.value, one.data.decode(), one.message, one.line, one.cost_usd]
        self._after.write(f"{json.dumps(fields)}\n")
