"""The calls that are wanted of a round, written into the files of its batches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from svc.bulk.durable import PART
from svc.bulk.sealing import UNSEALED, Sealing
from svc.files import sync_folder
from svc.jsontext import JsonObject
from svc.providers import BatchClient
from svc.records import Model


@dataclass(frozen=True, slots=True)
class BatchFile:
    """The calls of one batch, which are of one model, as every provider allows.

    `name` is that of the batch, which no other has; `stem` that of its files in `folder`. The calls
    have `size` bytes before they are sealed.
    """

    folder: Path
    stem: str
    name: str
    provider: str
    model: str
    lines: int
    size: int
    sealing: Sealing = field(default=UNSEALED, repr=False)

    @property
    def calls(self) -> Path:
        """The file of the calls."""
        return self.folder / f"{self.stem}.calls"

    @property
    def record(self) -> Path:
        """The file with what is known of the batch at its provider."""
        return self.folder / f"{self.stem}.json"

    @property
    def replies(self) -> Path:
        """The file of the results."""
        return self.folder / f"{self.stem}.replies"

    def lines_of_calls(self) -> Iterator[bytes]:
        """The calls, one a line. Raises `OSError`, and `SvcError` where one cannot be opened."""
        with self.calls.open("rb") as file:
            for number, kept in enumerate(file):
                label = call_label(self.name, number)
                yield self.sealing.open(label, kept.rstrip(b"\n")) + b"\n"


@dataclass(slots=True)
class _Open:
    """A file that is being written, for one model of one provider."""

    stem: str
    name: str
    provider: str
    model: str
    file: BinaryIO = field(repr=False)
    lines: int = 0
    size: int = 0


class Wanted:
    """Writes calls into files; a context manager, after which those are gone that did not last."""

    def __init__(
        self,
        folder: Path,
        number: int,
        name: str,
        apis: Mapping[str, BatchClient],
        sealing: Sealing = UNSEALED,
    ) -> None:
        """`number` is that of the round; names of batches begin with `name`."""
        self._folder, self._number, self._name, self._apis = folder, number, name, apis
        self._sealing = sealing
        self._all: list[_Open] = []
        self._last: dict[tuple[str, str], _Open] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in self._all:
            # On a full disk what is left to write cannot be written now either.
            with contextlib.suppress(OSError):
                one.file.close()
            with contextlib.suppress(OSError):
                Path(one.file.name).unlink()

    def add(self, call: str, model: Model, body: bytes) -> None:
        """Write one call, which has this id."""
        line = self._apis[model.provider].protocol.line(call, body)
        size = len(line) + len(b"\n")
        one = self._room(model, size)
        one.file.write(self._sealing.seal(call_label(one.name, one.lines), line) + b"\n")
        one.lines += 1
        one.size += size

    def written(self) -> list[JsonObject]:
        """The files, which last from now on, each by the fields of its `BatchFile`."""
        for one in self._all:
            one.file.flush()
            os.fsync(one.file.fileno())
            Path(one.file.name).replace(self._folder / f"{one.stem}.calls")
        sync_folder(self._folder)
        return [
            {
                "stem": one.stem,
                "name": one.name,
                "provider": one.provider,
                "model": one.model,
                "lines": one.lines,
                "size": one.size,
            }
            for one in self._all
        ]

    def _room(self, model: Model, size: int) -> _Open:
        """The file of a model that has room for so many bytes more."""
        key, terms = (model.provider, model.name), self._apis[model.provider].terms
        last = self._last.get(key)
        if last is None or last.lines >= terms.lines or last.size + size > terms.bytes:
            stem = f"{self._number:04}-{len(self._all):03}"
            file = (self._folder / f"{stem}.calls{PART}").open("wb")
            last = self._last[key] = _Open(stem, f"{self._name}-{stem}", *key, file)
            self._all.append(last)
        return last


def call_label(batch: str, number: int) -> str:
    """Under which a call of a batch is sealed, the first one with the number 0."""
    return f"{batch} {number}"
