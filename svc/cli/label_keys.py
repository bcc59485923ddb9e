"""What a reviewer types: single keys in a terminal, lines where there is none."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

# What a terminal sends for a key that has no character begins with this, mostly with one of these
# after it, and then ends with one of these.
_ESCAPE = b"\x1b"
_INTRODUCED = (b"[", b"O")
_FINAL = range(0x40, 0x7F)
# Seconds between two looks at whether somebody has pressed Ctrl-C.
LOOK_S = 0.1
_END_OF_INPUT = (b"", b"\x04")


class Typed(Protocol):
    """What somebody types."""

    single: bool

    def key(self) -> str:
        """The next key, or the next line where `single` is false. Raises `EOFError`."""

    def line(self) -> str:
        """The next line, without its end. Raises `EOFError`."""


class Lines:
    """Lines of standard input."""

    single = False

    def key(self) -> str:
        return self.line()

    def line(self) -> str:
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.strip()


class Keys:
    """Keys of a terminal, which does not show them, and lines, which it does."""

    single = True

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._usual = termios.tcgetattr(fd)

    def key(self) -> str:
        while (data := self._byte()) == _ESCAPE:
            self._pass_over()
        if data in _END_OF_INPUT:
            raise EOFError
        return data.decode("ascii", "replace")

    def _pass_over(self) -> None:
        """Read the rest of a key such as an arrow, all of which is there already."""
        if select.select([self._fd], [], [], 0)[0] and self._byte() in _INTRODUCED:
            while (data := self._byte()) and data[0] not in _FINAL:
                pass

    def _byte(self) -> bytes:
        # A Ctrl-C that comes just before a read would have to wait for the next key.
        while not select.select([self._fd], [], [], LOOK_S)[0]:
            pass
        return os.read(self._fd, 1)

    def line(self) -> str:
        self._set(self._usual)
        try:
            return input().strip()
        finally:
            self.start()

    def start(self) -> None:
        """Have keys come one by one, unseen; Ctrl-C stays what it is."""
        tty.setcbreak(self._fd, termios.TCSADRAIN)

    def stop(self) -> None:
        """Leave the terminal as it was."""
        self._set(self._usual)

    def _set(self, attributes: list[int | list[bytes | int]]) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, attributes)


@contextmanager
def typed() -> Iterator[Typed]:
    """Keys where standard input is a terminal, which is as before after the block; else lines."""
    if not sys.stdin.isatty():
        yield Lines()
        return
    keys = Keys(sys.stdin.fileno())
    keys.start()
    try:
        yield keys
    finally:
        keys.stop()
