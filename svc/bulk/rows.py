"""Rows of a table decided by running services: each becomes a request, and columns of its answer.

What engines share: which columns there are, which a caller knows before the first row; how a row's
request gets its key; and that a failure is a value in its row. Nothing here raises because of what
is in a row.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from svc.bulk.checkpoints import KEY_CHARS, Checkpoint
from svc.bulk.columns import (
    COST,
    ERROR,
    FIELDS,
    ID,
    OF_ROWS,
    BadRow,
    answer_of,
    held,
    kept_answer,
    plain,
)
from svc.bulk.services import Secret, Services, addresses, keys
from svc.client import Client, Decision, Question, Refused, ServiceError
from svc.phrases import listed, quoted

URL = "http://127.0.0.1:7777"

# Requests that one worker has under way at once, unless told otherwise.
THREADS = 16

# For how long a worker waits for services that answer nothing at all.
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Asking:
    """What is asked about each row, and of which services; it is sent to every worker."""

    questions: Mapping[str, Question]
    state: str | tuple[str, ...]
    row_id: str
    urls: tuple[str, ...]
    api_keys: tuple[Secret, ...]
    project: str | None = None
    job: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None
    threads: int = THREADS
    patience_s: float = PATIENCE_S

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys((self.row_id, *self.states)))

    @property
    def states(self) -> tuple[str, ...]:
        """The columns that make up the state."""
        return (self.state,) if isinstance(self.state, str) else self.state


def asking(
    questions: Mapping[str, Question],
    *,
    state: str | Iterable[str],
    row_id: str,
    url: str | Sequence[str] = URL,
    api_key: str | Sequence[str] | None = None,
    project: str | None = None,
    job: str = "",
    model: Any = None,
    more: Mapping[str, Any] | None = None,
    checkpoint: str | Path | None = None,
    threads: int = THREADS,
    patience_s: float = PATIENCE_S,
) -> Asking:
    """What a caller of an engine's function asks for, checked. Raises `ValueError`, `OSError`."""
    _check_questions(questions)
    given = {"model": model, "more": more}
    if threads < 1:
        raise ValueError("threads: must be at least 1")
    urls = addresses(url)
    asked = Asking(
        questions=dict(questions),
        state=state if isinstance(state, str) else tuple(state),
        row_id=row_id,
        urls=urls,
        api_keys=keys(api_key, len(urls)),
        project=project,
        job=job,
        options={name: value for name, value in given.items() if value is not None},
        checkpoint=None if checkpoint is None else _folder(str(checkpoint)),
        threads=threads,
        patience_s=patience_s,
    )
    try:
        _same(asked)
    except (TypeError, ValueError):
        raise ValueError("questions, model and more: must hold JSON values alone") from None
    return asked


def check_columns(given: Sequence[str], asked: Asking) -> None:
    """Check the names of a table's columns. Raises `ValueError`."""
    if missing := [name for name in asked.read if name not in given]:
        raise ValueError(f"no column {listed(missing)}; there are {listed(given)}")
    if taken := [name for name in (*asked.questions, *OF_ROWS) if name in given]:
        raise ValueError(f"there is already a column {listed(taken)}; rename it, or the question")


def read_row(asked: Asking, row: Sequence[Any]) -> tuple[str, Any]:
    """The id of a row as JSON, and its state; `row` has what `Asking.read` names.

    Raises `BadRow` for what cannot be sent.
    """
    values = dict(zip(asked.read, row, strict=True))
    state = _state(asked, values)
    return _json(values[asked.row_id], "row_id", asked.row_id), state


class Rows:
    """Decides rows, some at a time; a context manager that closes its connections."""

    def __init__(self, asked: Asking, services: Services | None = None) -> None:
        """`services` are those of `asked` unless given. Raises `OSError` for the checkpoint."""
        self._asked = asked
        self._services = _connected(asked) if services is None else services
        self._threads = ThreadPoolExecutor(asked.threads, thread_name_prefix="svc-bulk")
        folder = asked.checkpoint
        self._checkpoint = None if folder is None else Checkpoint(Path(folder))
        self._same = _same(asked)
        self._columns = {*asked.questions, *OF_ROWS}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._services.close()
        if self._checkpoint is not None:
            self._checkpoint.close()

    def decide(self, columns: Mapping[str, Sequence[Any]]) -> list[Mapping[str, Any]]:
        """The new columns of each row; `columns` are those that `Asking.read` names."""
        read = [columns[name] for name in self._asked.read]
        requests = [self._request(row) for row in zip(*read, strict=True)]
        keys = [one[0] for one in requests if not isinstance(one, BadRow)]
        kept = self._checkpoint.find(keys) if self._checkpoint is not None else {}
        return list(self._threads.map(lambda one: self._answer(one, kept), requests))

    def _request(self, row: Sequence[Any]) -> tuple[str, Any] | BadRow:
        """The key and the state of a row, or what is wrong with it."""
        try:
            row_id, state = read_row(self._asked, row)
        except BadRow as bad:
            return bad
        parts = (self._same, row_id.encode(), json.dumps(state).encode())
        digest = hashlib.blake2b(digest_size=KEY_CHARS // 2)
        for part in parts:
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.hexdigest(), state

    def _answer(
        self, request: tuple[str, Any] | BadRow, kept: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if isinstance(request, BadRow):
            return self._failed(str(request))
        key, state = request
        if key in kept and (found := self._found(kept[key])) is not None:
            return found
        asked = self._asked
        try:
            decision = self._services.decide(key, state, asked.questions, asked.options)
            answer = self._answered(decision)
        except ServiceError as error:
            return self._failed(_said(error))
        except BadRow as bad:
            return self._failed(str(bad))
        except Exception as error:  # noqa: BLE001 - what one row brings about is its own failure
            return self._failed(f"failed: {type(error).__name__}")
        if self._checkpoint is not None:
            self._checkpoint.keep(key, answer)
        return answer

    def _found(self, kept: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What was found in the checkpoint as the columns hold it; None where it is no answer."""
        if kept.keys() != self._columns:
            return None
        try:
            answers = {
                key: kept_answer(question, kept[key])
                for key, question in self._asked.questions.items()
            }
            return {**answers, **held(OF_ROWS, kept)}
        except BadRow:
            return None

    def _answered(self, decision: Decision) -> Mapping[str, Any]:
        answers = {
            key: answer_of(question, decision.answers[key].fields)
            for key, question in self._asked.questions.items()
        }
        return {**answers, ID: plain(decision.id), COST: decision.cost_usd, ERROR: None}

    def _failed(self, why: str) -> Mapping[str, Any]:
        return {**dict.fromkeys((*self._asked.questions, ID, COST)), ERROR: why}


def _same(asked: Asking) -> bytes:
    """What the requests of all rows have in common. Raises `TypeError` or `ValueError`."""
    bodies = {key: question.body() for key, question in asked.questions.items()}
    same = [asked.job, asked.project, bodies, dict(asked.options)]
    return json.dumps(same, allow_nan=False).encode()


def _state(asked: Asking, values: Mapping[str, Any]) -> Any:
    if isinstance(asked.state, str):
        _json(values[asked.state], "state", asked.state)
        return values[asked.state]
    state = {name: values[name] for name in asked.state}
    for name, value in state.items():
        # Beside other columns, one may be empty.
        if value is not None:
            _json(value, "state", name)
    return state


def _connected(asked: Asking) -> Services:
    clients = [
        Client(
            url,
            key.reveal(),
            asked.project,
            # `Services` tries again, where it knows of the other services.
            retries=0,
            connections=asked.threads,
        )
        for url, key in zip(asked.urls, asked.api_keys, strict=True)
    ]
    return Services(asked.urls, clients, asked.patience_s)


def _said(error: ServiceError) -> str:
    """A failure as the error column has it."""
    if isinstance(error, Refused):
        return plain(f"{error.type}: {error.message}")
    return plain(f"no_answer: {error}")


def _json(value: Any, place: str, column: str) -> str:
    """A value as JSON. Raises `BadRow`, which says what it is and not what is in it."""
    where = f"invalid_row: {place}: column {quoted(column)}"
    if value is None:
        raise BadRow(f"{where} is null")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadRow(f"{where} is not a finite number")
    try:
        return json.dumps(value, allow_nan=False)
    except RecursionError:
        raise BadRow(f"{where} is nested too deeply") from None
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise BadRow(f"{where} must hold text or another JSON value; this {kind} is none") from None


def _check_questions(questions: Mapping[str, Question]) -> None:
    if not questions:
        raise ValueError("questions: give at least one")
    if taken := [key for key in questions if key in OF_ROWS]:
        raise ValueError(f"questions: {listed(taken)} is the name of a column of its own")
    for key, question in questions.items():
        if getattr(question, "type", None) not in FIELDS:
            allowed = "Choice, Score, YesNo, Multi, Text, Number or Integer of svc.client"
            raise ValueError(f"questions: {quoted(key)} must be a {allowed}")


def _folder(path: str) -> str:
    """The absolute path of a checkpoint folder, which is made if it is not there."""
    if "://" in path:
        raise ValueError("checkpoint: must be a folder that every worker sees as a path, not a URL")
    folder = Path(path).absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder)
