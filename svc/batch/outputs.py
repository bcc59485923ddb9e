"""Output files that a later run continues, and standard output.

Beside `out.jsonl` stands `out.jsonl.run.json`, which says which run began it. Lines are appended
whole, by one process at a time. An incomplete line after an interruption is cut off and written
again. What is kept of results that have no place in it yet stands in further files (`beside.py`).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from svc import files, jsontext
from svc.batch import beside
from svc.batch.beside import RUN_SUFFIX, is_object
from svc.batch.inputs import STANDARD
from svc.errors import SettingsError
from svc.phrases import reason, visible

# The member of a run's record that is random.
RUN_ID = "id"
_ANEW = "--restart starts again and overwrites it, another -o leaves it as it is"

# What identifies the run of an output: its questions, input, model and so on. It may have a random
# id, which is another one when the output begins anew.
Run = Mapping[str, Any]
# Says how far the output of this path and descriptor is, and how many errors it has.
Count = Callable[[str, int], tuple[int, int]]

# The beginning of a line of a job's results.
_ROW = re.compile(rb'\{"row":([0-9]{1,9}),"id":"(?:[^"\\]|\\.)*","(decision|error)":')


class Output(Protocol):
    """Where result lines go.

    It had so many `lines` before, of which so many have `errors`. `resumable` says that a later run
    can continue it.
    """

    lines: int
    errors: int
    resumable: bool

    def write(self, data: bytes) -> None:
        """Write whole lines. Raises `SettingsError` when that is impossible."""

    def close(self) -> None: ...


def open_rows(path: str, run: Run, restart: bool) -> Output:
    """The output of a job's results; its `lines` are the number of the last row in it.

    Raises `SettingsError` as `open_output` does.
    """
    return open_output(path, run, restart, count=_last_row)


def check_rows(path: str, run: Run, restart: bool) -> None:
    """Raise `SettingsError` where `open_rows` would refuse an output of `run`; changes nothing.

    What is not known of the run yet can be missing in `run`.
    """
    if path == STANDARD:
        return
    try:
        begun = os.path.isfile(path) and os.path.getsize(path) > 0
        if restart or not begun:
            files.check_writable(Path(path))
            return
    except OSError as error:
        raise SettingsError(f"output {path!r}: {reason(error)}") from None
    began = _began(path, Path(path + RUN_SUFFIX), run)
    _compare(path, {name: began.get(name) for name in run}, run)


def open_output(
    path: str,
    run: Run,
    restart: bool,
    read: Sequence[os.stat_result] = (),
    count: Count | None = None,
) -> Output:
    """The output of `run`, which is continued where it exists, unless `restart` is set.

    `count` says how far an output is and how many errors it has, by default in lines. Raises
    `SettingsError` when another run began it, another process is writing it, or it is one of the
    input files, which `read` identifies.
    """
    name = "standard output" if path == STANDARD else f"output {path!r}"
    anew = restart or not os.path.exists(path)
    fd = os.dup(1) if path == STANDARD else _opened(path)
    try:
        status = os.fstat(fd)
        regular = stat.S_ISREG(status.st_mode)
        if regular and any(os.path.samestat(status, one) for one in read):
            raise SettingsError(f"{name} is also read from; name another file")
        if path == STANDARD or not regular:
            return Terminal(fd, name) if os.isatty(fd) else Stream(fd, name)
        return _resumed(path, fd, run, anew, count or _count)
    except BaseException:
        os.close(fd)
        raise


@dataclass(slots=True)
class Stream:
    """An output that can only be written once, such as a pipe or a terminal."""

    fd: int
    name: str
    lines: int = 0
    errors: int = 0
    resumable: bool = False

    def write(self, data: bytes) -> None:
        """Raises `BrokenPipeError` where nobody reads any more."""
        while data:
            try:
                data = data[os.write(self.fd, data) :]
            except BrokenPipeError:
                raise
            except OSError as error:
                raise self._failure(error) from None

    def close(self) -> None:
        os.close(self.fd)

    def _failure(self, error: OSError) -> SettingsError:
        return SettingsError(f"{self.name}: cannot write: {reason(error)}")


class Terminal(Stream):
    """A terminal: characters that it would obey, or not show, are written as JSON escapes."""

    def write(self, data: bytes) -> None:
        Stream.write(self, jsontext.visible(data.decode()).encode())


class Appended(Stream):
    """A file that a later run can continue."""

    def close(self) -> None:
        try:
            os.fsync(self.fd)
        except OSError as error:
            raise self._failure(error) from None
        finally:
            os.close(self.fd)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise SettingsError(f"output {path!r}: {reason(error)}") from None


def _resumed(path: str, fd: int, run: Run, anew: bool, count: Count) -> Appended:
    output = Appended(fd, f"output {path!r}", resumable=True)
    record = Path(path + RUN_SUFFIX)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if anew:
            # Before the record is written, so that lines never stand beside that of another run.
            os.ftruncate(fd, 0)
        if os.fstat(fd).st_size or (not anew and _is_of(path, record, run)):
            _compare(path, _began(path, record, run), run)
            output.lines, output.errors = count(path, fd)
        else:
            beside.forget(path)
            _write_record(record, run)
    except BlockingIOError:
        raise SettingsError(f"output {path!r}: another process is writing it") from None
    except OSError as error:
        raise SettingsError(f"output {path!r}: {reason(error)}") from None
    return output


def _is_of(path: str, record: Path, run: Run) -> bool:
    """Whether the same run began an output that has no line yet."""
    with suppress(SettingsError):
        _compare(path, _began(path, record, run), run)
        return True
    return False


def _write_record(record: Path, run: Run) -> None:
    """Write a run's record in the place of whatever has its name, also of a link.

    In a folder that all may write to, somebody may have laid one to a file of ours.
    """
    new = files.new_beside(record)
    try:
        text = json.dumps(run, indent=2, ensure_ascii=False) + "\n"
        new.write_bytes(text.encode("utf-8", "replace"))
        new.replace(record)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _began(path: str, record: Path, run: Run) -> Run:
    """The run that began the output. Raises `SettingsError` where its record is of no use."""
    if not record.is_file():
        raise SettingsError(
            f"output {path!r} exists already, and there is no {record.name!r} beside it that says "
            f"which run began it; {_ANEW}"
        )
    try:
        began = json.loads(record.read_text("utf-8"))
    except (ValueError, RecursionError):
        raise SettingsError(f"{str(record)!r} is damaged; {_ANEW}") from None
    began = began if isinstance(began, dict) else {}
    # Older records have no command.
    began.setdefault("command", run.get("command"))
    return began


def run_of(path: str) -> Run:
    """The run that began an output, nothing where no record says which."""
    with suppress(SettingsError, OSError):
        return _began(path, Path(path + RUN_SUFFIX), {})
    return {}


def run_id(path: str) -> str:
    """The random id of the run that began an output, a new one where its record has none."""
    return str(run_of(path).get(RUN_ID) or new_run_id())


def new_run_id() -> str:
    return secrets.token_hex(16)


def _compare(path: str, began: Run, run: Run) -> None:
    """Raise `SettingsError` unless the same run began the output."""
    every = {**run, **began}.keys() - {RUN_ID}
    other = sorted(name for name in every if began.get(name) != run.get(name))
    if other:
        names = " and ".join(map(visible, other))
        raise SettingsError(f"output {path!r} belongs to a run with a different {names}; {_ANEW}")


def _count(path: str, fd: int) -> tuple[int, int]:
    """Lines and error lines of an output; a half line at its end is cut."""
    errors = lines = 0
    for lines, line in enumerate(_whole_lines(fd), 1):
        head = b'{"line":%d,' % lines
        if not line.startswith(head) or not is_object(line):
            raise SettingsError(
                f"output {path!r}: line {lines} is not the result of line {lines} of an "
                f"input; {_ANEW}"
            )
        errors += line.startswith(b'"error":', len(head))
    return lines, errors


def _last_row(path: str, fd: int) -> tuple[int, int]:
    """The number of the last row in a job's results, and how many have errors.

    Rows that were never asked are missing. A half line at the end is cut.
    """
    last = errors = 0
    for place, line in enumerate(_whole_lines(fd), 1):
        found = _ROW.match(line)
        number = int(found[1]) if found else 0
        if found is None or number <= last or not is_object(line):
            raise SettingsError(
                f"output {path!r}: line {place} is not the result of a further row; {_ANEW}"
            )
        last, errors = number, errors + (found[2] == b"error")
    return last, errors


def _whole_lines(fd: int) -> Iterator[bytes]:
    """The lines of an output. What follows the last line break is cut off in the end."""
    size = 0
    with open(fd, "rb", closefd=False) as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            size += len(line)
            yield line
    os.ftruncate(fd, size)
