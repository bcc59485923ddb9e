"""Which rows are asked directly before a job goes on in batches."""

from __future__ import annotations

import pytest

from svc.bulk.answering import Settled
from svc.bulk.first_rows import TRIED, ask_first
from svc.errors import ApiError, ModelError, NoAnswer, OutOfCalls, RateLimited, WrongWay


class Asked:
    """Rows of which the first ones fail, and a model that is known once one was answered by it."""

    def __init__(self, failing: int = 0, by_rules: int = 0, rows: int = 40) -> None:
        self.left = list(range(1, rows + 1))
        self.failing, self.by_rules = failing, by_rules
        self.asked: list[int] = []
        self.waits: list[float] = []
        self.known = False

    def ask(self, number: int, text: str) -> ApiError | Settled:
        self.asked.append(number)
        if len(self.asked) <= self.failing:
            return RateLimited("rate", 7) if len(self.asked) == 1 else ModelError("no answer")
        self.left.remove(number)
        self.known = len(self.asked) > self.failing + self.by_rules
        return Settled.BY_MODEL if self.known else Settled.WITHOUT_MODEL

    def run(self) -> None:
        rows = lambda: [(number, "{}") for number in self.left]  # noqa: E731
        ask_first(rows, self.ask, lambda: self.known, self.waits.append)


def test_one_row_is_enough_where_a_model_answers_it() -> None:
    asked = Asked()
    asked.run()
    assert asked.asked == [1] and asked.waits == []


def test_rows_that_fail_are_tried_in_turn_with_longer_and_longer_pauses() -> None:
    asked = Asked(failing=12)
    asked.run()
    assert asked.asked == [*range(1, TRIED + 1), 11, 12, 13]
    assert asked.waits == [7.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[60.0] * 6]


def test_rows_that_always_fail_are_asked_about_again_once_all_others_were() -> None:
    asked = Asked(failing=25, rows=12)
    asked.run()
    assert asked.asked == [*range(1, 13), *range(1, 13), 1, 2]


@pytest.mark.parametrize("error", [NoAnswer("withheld"), WrongWay("refused"), OutOfCalls("80")])
def test_rows_that_no_waiting_can_help_are_not_asked_about_for_ever(error: ApiError) -> None:
    asked: list[int] = []

    def withheld(number: int, text: str) -> ApiError:
        asked.append(number)
        return error

    ask_first(lambda: [(1, "{}")], withheld, lambda: False, lambda _: None)
    assert asked == [1] * TRIED


def test_rows_that_need_no_model_are_not_asked_about_for_ever() -> None:
    asked = Asked(by_rules=1_000)
    asked.run()
    assert len(asked.asked) == TRIED
    asked = Asked(by_rules=1_000, rows=3)
    asked.run()
    assert asked.left == []
