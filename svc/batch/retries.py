"""Outputs of which only the lines with an error are asked about again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from svc import files
from svc.batch.inputs import InputLine
from svc.batch.outputs import Output, Run, open_output
from svc.errors import SettingsError
from svc.phrases import reason

_NUMBER = re.compile(rb'\{"line":(\d+),')
_ERROR = re.compile(rb'\{"line":\d+,"error":')


class Retried:
    """An earlier output in which new results take the place of error lines.

    They are written into a file beside it, which replaces it when this is closed: what has no new
    result by then keeps its error. `failures` of its `results` have one.
    """

    resumable = True

    def __init__(self, path: str, earlier: Output) -> None:
        """`earlier` is the same output, opened; it is closed with this one. Raises `OSError`."""
        self.lines = self.errors = 0
        self.results, self.failures = earlier.lines, earlier.errors
        self._earlier, self._path = earlier, Path(os.path.realpath(path))
        self._old: BinaryIO = self._path.open("rb")
        self._beside = files.new_beside(self._path)
        self._new: BinaryIO = self._beside.open("wb")
        self._at, self._sound = 0, True

    def failed(self, lines: Iterator[InputLine]) -> Iterator[InputLine]:
        """Those of the input's `lines` whose result is an error."""
        with self._path.open("rb") as results:
            for line, result in zip(lines, results, strict=False):
                if _ERROR.match(result):
                    yield line

    def write(self, data: bytes) -> None:
        """Write the new result of a line. Raises `SettingsError`."""
        found = _NUMBER.match(data)
        assert found is not None
        try:
            while self._at < int(found[1]) - 1:
                self._new.write(self._next())
            self._next()
            self._new.write(data)
        except OSError as error:
            self._sound = False
            raise self._failure(error) from None

    def close(self) -> None:
        """Put the new file in place of the old one, unless it could not be written."""
        try:
            if self._sound and self._at:
                self._finish()
        except OSError as error:
            raise self._failure(error) from None
        finally:
            self._new.close()
            self._old.close()
            self._beside.unlink(missing_ok=True)
            self._earlier.close()

    def _finish(self) -> None:
        shutil.copyfileobj(self._old, self._new)
        self._new.flush()
        os.fsync(self._new.fileno())
        shutil.copymode(self._path, self._beside)
        self._beside.replace(self._path)

    def _next(self) -> bytes:
        self._at += 1
        return self._old.readline()

    def _failure(self, error: OSError) -> SettingsError:
        return SettingsError(f"output {str(self._path)!r}: cannot write: {reason(error)}")


def open_retried(path: str, run: Run, read: Sequence[os.stat_result] = ()) -> Retried:
    """The output of `run`, of which error lines are to be replaced.

    Raises `SettingsError` where there is none, and as `open_output` does.
    """
    if not os.path.isfile(path):
        raise SettingsError(f"output {path!r}: there is no such file of an earlier run to retry")
    earlier = open_output(path, run, False, read)
    try:
        return Retried(path, earlier)
    except OSError as error:
        earlier.close()
        raise SettingsError(f"output {path!r}: {reason(error)}") from None
