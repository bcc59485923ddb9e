"""Outputs of which only the lines with an error are asked about again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

from svc.batch import beside
from svc.batch.beside import OWNER_ALONE, RETRIED_SUFFIX
from svc.batch.inputs import InputLine
from svc.batch.outputs import Appended, Output, Run, open_output
from svc.errors import SettingsError
from svc.phrases import reason

_ERROR = re.compile(rb'\{"line":\d+,"error":')
_NO_MORE = (0, b"")


class Retried:
    """An earlier output in which new results take the place of error lines.

    They are kept in a file beside it until this is closed: what has no new result by then keeps
    its error. `failures` of its `results` have one.
    """

    resumable = True

    def __init__(self, path: str, earlier: Output) -> None:
        """`earlier` is the same output, opened; it is closed with this one. Raises `OSError`."""
        self.lines = self.errors = 0
        self.results, self.failures = earlier.lines, earlier.errors
        self._earlier, self._path, self._kept = earlier, path, Path(path + RETRIED_SUFFIX)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self._kept, flags, OWNER_ALONE)
        self._new = Appended(descriptor, f"output {path!r}")
        self._new.write(beside.head(path, RETRIED_SUFFIX))

    def failed(self, lines: Iterator[InputLine]) -> Iterator[InputLine]:
        """Those of the input's `lines` whose result is an error."""
        with open(self._path, "rb") as results:
            for line, result in zip(lines, results, strict=False):
                if _ERROR.match(result):
                    yield line

    def write(self, data: bytes) -> None:
        """Keep the new result of a line. Raises `SettingsError`."""
        self._new.write(data)

    def close(self) -> None:
        """Put the new results in their places. Raises `SettingsError`, and keeps them then."""
        try:
            self._new.close()
            _take_over(self._path, self._kept)
        except OSError as error:
            raise SettingsError(f"output {self._path!r}: cannot write: {reason(error)}") from None
        finally:
            self._earlier.close()


def open_retried(path: str, run: Run, read: Sequence[os.stat_result] = ()) -> Retried:
    """The output of `run`, of which error lines are to be replaced.

    What a killed run has kept is put in its place first. Raises `SettingsError` where there is no
    output, and as `open_output` does.
    """
    if not os.path.isfile(path):
        raise SettingsError(f"output {path!r}: there is no such file of an earlier run to retry")
    try:
        _take_up(path, run, read)
        return _opened(path, run, read)
    except OSError as error:
        raise SettingsError(f"output {path!r}: {reason(error)}") from None


def _take_up(path: str, run: Run, read: Sequence[os.stat_result]) -> None:
    """Put what a killed run has kept in its place; the output is another file afterwards."""
    kept = Path(path + RETRIED_SUFFIX)
    if kept.exists():
        with closing(open_output(path, run, False, read)):
            beside.check(path, RETRIED_SUFFIX)
            _take_over(path, kept)


def _opened(path: str, run: Run, read: Sequence[os.stat_result]) -> Retried:
    earlier = open_output(path, run, False, read)
    try:
        return Retried(path, earlier)
    except BaseException:
        earlier.close()
        raise


def _take_over(path: str, kept: Path) -> None:
    """Put kept results in their places in an output, and delete the file that kept them."""
    with open(path, "rb") as old, kept.open("rb") as file:
        results = _results(file)
        first = next(results, None)
        if first is not None:
            _rewrite(Path(os.path.realpath(path)), _merged(old, chain([first], results)))
    kept.unlink()


def _results(lines: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """The kept results with the numbers of their lines, up to one that was not written whole."""
    last = 0
    next(lines, None)
    for line in lines:
        number = beside.number_of(line)
        if number <= last:
            return
        last = number
        yield number, line


def _merged(old: Iterable[bytes], results: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """The lines of an output with new results in the places of error lines."""
    number, result = next(results, _NO_MORE)
    for place, line in enumerate(old, 1):
        if place != number:
            yield line
            continue
        yield result if _ERROR.match(line) else line
        number, result = next(results, _NO_MORE)


def _rewrite(path: Path, lines: Iterable[bytes]) -> None:
    """Replace a file as a whole. A new one that a killed process has left is overwritten."""
    new = path.with_name(f".{path.name}{RETRIED_SUFFIX}.new")
    new.unlink(missing_ok=True)
    new.touch(OWNER_ALONE, exist_ok=False)
    try:
        with new.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
