"""The lines of a block, written down because an input may give them only once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from svc.batch import Form, InputLine
from svc.bulk.durable import own_folder


class BlockLines:
    """The lines in the folder of a block."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "rows"

    def keep(self, lines: Iterable[InputLine]) -> None:
        """Write lines down, in place of earlier ones."""
        own_folder(self._path.parent)
        with self._path.open("w", encoding="ascii") as file:
            for line in lines:
                data = None if line.data is None else line.data.decode("latin-1")
                file.write(f"{json.dumps([line.number, data, line.error])}\n")

    def read(self, form: Form) -> Iterator[InputLine]:
        """The lines, whose input has this form."""
        with self._path.open(encoding="ascii") as file:
            for text in file:
                number, data, error = json.loads(text)
                encoded = None if data is None else data.encode("latin-1")
                yield InputLine(number, encoded, form, error)
