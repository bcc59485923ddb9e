"""Results that are there before those of earlier lines, kept in a file beside the output.

An output is written in the order of its lines, and one slow line holds up all that are answered
behind it. These were paid for, so that a run that ends before its time must not lose them.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from svc.batch import beside
from svc.batch.inputs import InputLine
from svc.batch.run import Kind, Result
from svc.errors import SettingsError
from svc.phrases import reason


class Ahead:
    """What results ahead of others cost, where no later run could use them."""

    # Whether the next run finds what this one has kept.
    lasts = False

    def __init__(self) -> None:
        """None is there yet."""
        # In dollars, by the number of the line.
        self._costs: dict[int, float] = {}

    def work(self, work: Callable[[InputLine], Result], line: InputLine) -> Result:
        """The result of a line that an earlier run has kept, or that of `work`."""
        return work(line)

    def keep(self, result: Result) -> None:
        """Keep a result, unless it is a failure."""
        if result.kind is Kind.ANSWERED and self._kept(result):
            self._costs[result.line] = result.cost_usd

    def clear(self) -> None:
        """Forget what this run has kept, which is in the output now."""
        self._costs.clear()

    def beyond(self, line: int) -> tuple[int, float]:
        """How many results behind this line the run has kept, and their cost in dollars."""
        costs = [cost for number, cost in self._costs.items() if number > line]
        return len(costs), sum(costs)

    def end(self, last: int) -> None:
        """Leave to the next run what is kept behind the line that was written last."""

    def _kept(self, result: Result) -> bool:
        return True


class AheadFile(Ahead):
    """Results ahead of others, which the next run of the same output finds in a file.

    The file is made when the first is kept. Where there is no room for one, it is not kept.
    """

    lasts = True

    def __init__(self, path: str, suffix: str) -> None:
        """The file stands beside the output at `path`, which is opened and locked.

        Raises `SettingsError` where it cannot be read, or is not of this output.
        """
        super().__init__()
        self._path, self._suffix = path, suffix
        self._fd: int | None = None
        # Where each result of earlier runs stands, by the number of its line, and their end.
        self._places: dict[int, tuple[int, int]] = {}
        self._begin = 0
        try:
            if os.path.exists(path + suffix):
                beside.check(path, suffix)
                self._open()
        except OSError as error:
            raise SettingsError(f"{path + suffix!r}: {reason(error)}") from None

    def work(self, work: Callable[[InputLine], Result], line: InputLine) -> Result:
        place = self._places.get(line.number)
        if place is None or self._fd is None:
            return work(line)
        return Result(Kind.ANSWERED, os.pread(self._fd, place[1], place[0]), line=line.number)

    def clear(self) -> None:
        super().clear()
        if self._fd is not None:
            # Results of earlier runs stay until the end of this one.
            os.ftruncate(self._fd, self._begin)

    def end(self, last: int) -> None:
        if self._fd is None:
            return
        if not any(number > last for number in (*self._costs, *self._places)):
            os.unlink(self._path + self._suffix)
        os.close(self._fd)
        self._fd = None

    def _kept(self, result: Result) -> bool:
        if result.line in self._places:
            return False
        try:
            return self._appended(self._open(), result.data)
        except OSError:
            return False

    def _appended(self, fd: int, data: bytes) -> bool:
        """Whether all of it is in the file; what is not leaves no part there."""
        end = os.fstat(fd).st_size
        whole = os.write(fd, data) == len(data)
        if not whole:
            os.ftruncate(fd, end)
        return whole

    def _open(self) -> int:
        """The file, made where it is not there."""
        if self._fd is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            flags |= os.O_NOFOLLOW | os.O_NONBLOCK
            fd = os.open(self._path + self._suffix, flags, beside.OWNER_ALONE)
            try:
                self._begin = self._looked_through(fd)
                # A killed process may have left a part of a line.
                os.ftruncate(fd, self._begin)
            except BaseException:
                os.close(fd)
                raise
            self._fd = fd
        return self._fd

    def _looked_through(self, fd: int) -> int:
        """Find what earlier runs have kept; where it ends."""
        head = beside.head(self._path, self._suffix)
        with open(fd, "rb", closefd=False) as file:
            if file.readline(len(head)) != head:
                os.ftruncate(fd, 0)
                return os.write(fd, head)
            end = len(head)
            for line in file:
                number = beside.number_of(line)
                if not number:
                    break
                self._places[number] = (end, len(line))
                end += len(line)
        return end


def ahead_of(path: str, lasts: bool, retried: bool) -> Ahead:
    """What is kept of an opened output; lines that are `retried` have a file of their own.

    It `lasts` where the next run has the same lines for sure. Raises `SettingsError` as
    `AheadFile` does.
    """
    suffix = beside.RETRIED_AHEAD_SUFFIX if retried else beside.AHEAD_SUFFIX
    return AheadFile(path, suffix) if lasts else Ahead()
