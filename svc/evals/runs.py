"""Runs over eval sets, and the file that keeps their scored rows.

A line of the file is one scored row, with all that identifies it: how models were asked (`run`),
the set and its row, and digests of the question's wording and of the row's content. No line holds a
state.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from marshmallow import ValidationError

from svc import jsontext
from svc.batch import Appended, Output
from svc.engine.plans import named_kinds
from svc.errors import ApiError, SettingsError
from svc.evals.scoring import Scored
from svc.evals.sets import EvalRow, EvalSet
from svc.phrases import reason
from svc.schemas import PlanField

# The beginning of every line.
_HEAD = b'{"set":'
_KINDS = {"set": str, "row": int, "question": str, "content": str, "config": str, "debias": bool}
# The lowest and the highest value of what figures are made from.
_RANGES = {
    "row": (1, 2**53),
    "confidence": (0, 1),
    "brier": (0, 2),
    "latency_ms": (0, 1e12),
    "cost_usd": (0, 1e12),
}


@dataclass(frozen=True, slots=True)
class Run:
    """How rows are asked: the plan as `POST /v1/decide` takes it, mode, debias and config."""

    model: Any
    mode: str
    debias: bool
    config: str

    @property
    def key(self) -> str:
        """A text that is the same for runs that ask in the same way."""
        return jsontext.dumps(asdict(self))

    @property
    def title(self) -> str:
        """The run in words for people."""
        debias = "both option orders" if self.debias else "one option order"
        return f"{plan_text(self.model)}, mode {self.mode}, {debias}, {self.config}"


@dataclass(frozen=True, slots=True)
class SavedRow:
    """A row as a run scored it.

    `question` is the digest of the wording, `content` that of state and label.
    """

    run: Run
    set: str
    row: int
    question: str
    content: str
    scored: Scored

    @property
    def identity(self) -> tuple[str, str, int]:
        """Run, set and number: a later line with the same ones replaces this one."""
        return self.run.key, self.set, self.row

    def answers(self, run: Run, eval_set: EvalSet, row: EvalRow) -> bool:
        """Whether it is no failure, and question, row and way of asking are still the same."""
        same = (run.key, eval_set.digest, row.digest) == (self.run.key, self.question, self.content)
        return same and not self.scored.error


class Saved:
    """A file of scored rows, which grows; used by any number of threads."""

    def __init__(self, output: Output, rows: Iterable[SavedRow]) -> None:
        self._output = output
        # The error of a write that may have left half a line.
        self._broken: SettingsError | None = None
        self._rows = {row.identity: row for row in rows}
        self._lock = threading.Lock()

    def find(self, run: Run, eval_set: EvalSet, row: EvalRow) -> Scored | None:
        """The score of an earlier run, unless question, row or way of asking have changed."""
        saved = self._rows.get((run.key, eval_set.name, row.number))
        return saved.scored if saved and saved.answers(run, eval_set, row) else None

    def add(self, run: Run, eval_set: EvalSet, row: EvalRow, scored: Scored) -> None:
        """Append a row. Raises `SettingsError` when it cannot be written."""
        line = {
            "set": eval_set.name,
            "row": row.number,
            "run": asdict(run),
            "question": eval_set.digest,
            "content": row.digest,
            **asdict(scored),
        }
        data = f"{jsontext.dumps(line)}\n".encode("utf-8", "replace")
        with self._lock:
            if self._broken:
                raise self._broken
            try:
                self._output.write(data)
            except SettingsError as error:
                self._broken = error
                raise


@contextmanager
def opened(path: str) -> Iterator[Saved]:
    """A file to append to; half a line, which an interruption left at its end, is cut off.

    Raises `SettingsError` when it is no such file, or another process is writing it.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise SettingsError(f"file {path!r}: {reason(error)}") from None
    try:
        _lock(fd, path)
        rows = read(path)
        with open(fd, "rb", closefd=False) as file:
            os.ftruncate(fd, sum(len(line) for line in file if line.endswith(b"\n")))
    except BaseException:
        os.close(fd)
        raise
    with closing(Appended(fd, f"file {path!r}")) as output:
        yield Saved(output, rows)


def read(path: str) -> list[SavedRow]:
    """The rows of a file, each as its last line has it; half a line at the end is left out.

    Raises `SettingsError` for what cannot be read or is no such file.
    """
    rows: dict[tuple[str, str, int], SavedRow] = {}
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    _check_half(line, path, number)
                else:
                    row = _parsed(line, path, number)
                    # Rows stand in the order of their last lines.
                    rows.pop(row.identity, None)
                    rows[row.identity] = row
    except OSError as error:
        raise SettingsError(f"file {path!r}: {reason(error)}") from None
    return list(rows.values())


def by_run(rows: Iterable[SavedRow]) -> list[tuple[Run, dict[str, list[SavedRow]]]]:
    """Rows by run and set, in order; only those whose wording was the last one asked in its set."""
    rows = list(rows)
    wordings = {(row.run.key, row.set): row.question for row in rows}
    runs = {row.run.key: row.run for row in rows}
    sets: dict[str, dict[str, list[SavedRow]]] = {key: {} for key in runs}
    for row in sorted(rows, key=lambda row: (row.set, row.row)):
        if wordings[row.run.key, row.set] == row.question:
            sets[row.run.key].setdefault(row.set, []).append(row)
    return [(run, sets[key]) for key, run in runs.items()]


def plan_text(model: Any) -> str:
    """A plan in few words."""
    if isinstance(model, str):
        return model
    if isinstance(model, list):
        return " then ".join(map(str, model))
    (kind,) = (kind for kind in named_kinds() if kind.name in model)
    set_options = {name: option for name, option in kind.options.items() if name in model}
    options = [f" {option.word} {model[name]:g}" for name, option in set_options.items()]
    return f"{kind.name} of {', '.join(map(str, model[kind.name]))}{''.join(options)}"


def _lock(fd: int, path: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SettingsError(f"file {path!r}: another process is writing it") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise SettingsError(
            f"file {path!r}: it is not a regular file; saved rows are read again by the next run, "
            "so a device or a pipe cannot hold them"
        )


def _check_half(line: bytes, path: str, number: int) -> None:
    """Raise `SettingsError` for what is not the beginning of a row: a file that is not ours."""
    if line[: len(_HEAD)] != _HEAD[: len(line)]:
        raise _not_ours(path, number)


def _not_ours(path: str, number: int) -> SettingsError:
    return SettingsError(
        f"file {path!r}: line {number} is not a row that `svc bench --save` wrote; name a file of "
        "its own"
    )


def _parsed(line: bytes, path: str, number: int) -> SavedRow:
    try:
        value = jsontext.loads(line)
        run = Run(**value.pop("run"))
        about = {name: value.pop(name) for name in ("set", "row", "question", "content")}
        _check(run, about, value)
        return SavedRow(run, **about, scored=Scored(**value))
    except (ApiError, ValidationError, ValueError, TypeError, KeyError, AttributeError):
        raise _not_ours(path, number) from None


def _check(run: Run, about: Mapping[str, Any], scored: Mapping[str, Any]) -> None:
    """Raise `ValueError` or `ValidationError` for a value that no figure could be made of."""
    PlanField().deserialize(run.model)
    kinds = {name: type(value) for name, value in asdict(Scored()).items()} | _KINDS
    options = {name: getattr(run, name) for name in ("mode", "debias", "config")}
    for name, value in (*options.items(), *about.items(), *scored.items()):
        low, high = _RANGES.get(name, (value, value))
        wanted = (int, float) if kinds[name] is float else (kinds[name],)
        if type(value) not in wanted or not low <= value <= high:
            raise ValueError(name)
