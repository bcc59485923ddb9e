from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from svc.batch.inputs import InputLine
from svc.batch.progress import Progress
from svc.batch.run import FAILURES, HELD, Kind, LineAnswer, Tally, answer_line, write_all
from svc.errors import (
    ApiError,
    InvalidRequest,
    ModelError,
    ModelUnavailable,
    QuotaSpent,
    RateLimited,
    Timeout,
)

ANSWER = {"id": "dec_1", "cost_usd": 0.5, "answers": {}}
FAILED, REFUSED, QUOTA = ModelError("no"), InvalidRequest("bad"), QuotaSpent("spent", 60)


@dataclass
class Lines:
    """An output in memory."""

    lines: int = 0
    errors: int = 0
    resumable: bool = True
    written: list[dict[str, Any]] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        self.written += map(json.loads, data.splitlines())

    def close(self) -> None:
        pass


def run(
    outcomes: Iterable[ApiError | None], resumable: bool = True
) -> tuple[list[dict[str, Any]], Tally]:
    """What is written of lines that end so, None for an answer."""

    def answer(outcome: ApiError | None) -> Any:
        def answered(_: Any) -> LineAnswer:
            if outcome is not None:
                raise outcome
            return LineAnswer(ANSWER, 0.5)

        return answered

    output, tally = Lines(resumable=resumable), Tally(0, 0)
    results = (
        answer_line(answer(outcome), InputLine(number, b"0"))
        for number, outcome in enumerate(outcomes, start=1)
    )
    write_all(results, output, Progress(io.StringIO(), None, 0, drawn=False), tally)
    return output.written, tally


def test_a_line_is_its_number_and_the_response() -> None:
    written, tally = run([None, None])
    assert written == [{"line": 1, **ANSWER}, {"line": 2, **ANSWER}]
    assert (tally.lines, tally.errors, tally.cost_usd, tally.stopped) == (2, 0, 1.0, "")


def test_an_answer_chooses_neither_its_number_nor_that_it_is_an_error() -> None:
    theirs = LineAnswer({"line": 8, **ANSWER, "error": {"type": "x"}}, 0.5)
    result = answer_line(lambda _record: theirs, InputLine(2, b"0"))
    assert result.kind is Kind.ANSWERED
    assert json.loads(result.data) == {"line": 2, **ANSWER}


@pytest.mark.parametrize(
    "error", [FAILED, REFUSED, ModelUnavailable("m"), RateLimited("m", 1), Timeout("m")]
)
def test_a_line_without_an_answer_is_an_error_line_and_the_run_goes_on(error: ApiError) -> None:
    written, tally = run([None, error, None])
    shown = {"type": error.type, "message": error.message}
    assert written == [{"line": 1, **ANSWER}, {"line": 2, "error": shown}, {"line": 3, **ANSWER}]
    assert (tally.lines, tally.errors, tally.stopped) == (3, 1, "")


def test_ten_failures_in_a_row_stop_the_run_with_those_lines_unwritten() -> None:
    written, tally = run([None, *[FAILED] * FAILURES, None])
    assert written == [{"line": 1, **ANSWER}]
    assert tally.lines == 1 and "10 lines in a row" in tally.stopped


def test_nine_failures_are_error_lines_once_a_model_answers_again() -> None:
    written, tally = run([*[FAILED] * 9, None, *[FAILED] * 9, None])
    assert [line["line"] for line in written] == list(range(1, 21))
    assert (tally.errors, tally.stopped) == (18, "")


def test_a_few_failures_at_the_very_end_are_error_lines() -> None:
    written, tally = run([None, FAILED, REFUSED, FAILED])
    assert len(written) == 4 and (tally.errors, tally.stopped) == (3, "")


def test_error_lines_that_an_outage_left_are_counted() -> None:
    _, tally = run([None, FAILED, REFUSED, FAILED, None, FAILED])
    assert (tally.errors, tally.unanswered) == (4, 3)


def test_lines_at_fault_neither_end_nor_lengthen_a_row_of_failures() -> None:
    written, tally = run([None, *[FAILED, REFUSED] * FAILURES])
    assert len(written) == 1 and tally.stopped
    written, tally = run([None, *[REFUSED] * 50])
    assert len(written) == 51 and not tally.stopped


def test_what_is_held_back_is_bounded() -> None:
    written, _ = run([FAILED, *[REFUSED] * (HELD - 1), QUOTA])
    assert len(written) == HELD


def test_a_spent_quota_stops_the_run_at_once_with_that_line_unwritten() -> None:
    written, tally = run([None, FAILED, QUOTA, None])
    assert [line["line"] for line in written] == [1]
    assert tally.stopped == "spent"


def test_a_line_that_fails_in_an_unforeseen_way_says_nothing_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def answer(_: Any) -> LineAnswer:
        raise KeyError("secret")

    result = answer_line(answer, InputLine(7, b"0"))
    assert result.kind is Kind.FAILED
    assert json.loads(result.data)["error"]["type"] == "internal_error"
    assert b"secret" not in result.data
    assert "line 7" in caplog.text
