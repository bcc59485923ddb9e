"""How lines of a book are kept: as they are, or so that nobody else can read them."""

from __future__ import annotations

from typing import Protocol


class Sealing(Protocol):
    """Makes one line of another, and the other way round."""

    def seal(self, label: str, line: bytes) -> bytes:
        """What is kept of a line without a line break, which has none either."""

    def open(self, label: str, kept: bytes) -> bytes:
        """The line that was sealed under this label. Raises `SvcError` for anything else."""


class Unsealed:
    """Keeps lines as they are."""

    def seal(self, _label: str, line: bytes) -> bytes:
        return line

    def open(self, _label: str, kept: bytes) -> bytes:
        return kept


UNSEALED = Unsealed()
