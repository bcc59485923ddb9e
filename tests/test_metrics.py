from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from svc.metrics import (
    BUCKETS,
    PROJECT_MODELS,
    PROJECT_SERIES,
    REST,
    ROWS,
    TYPE_SERIES,
    Board,
    Metrics,
)
from svc.records import SKIPPED, Answer, Decision, Source
from svc.store import StorageError
from svc.tallies import PROCESSES
from tests.openapi.judge import document
from tests.store.records import asked, record

SURE = Answer(Source.MODELS, {"choice": "a"}, "a", 0.9)
UNSURE = Answer(Source.MODELS, {"choice": "a"}, "a", 0.4, abstains=True)


def decided(*answers: Answer, **fields: Any) -> Decision:
    """A decision whose questions are choices called 0, 1 and so on."""
    by_key = {str(number): answer for number, answer in enumerate(answers)}
    questions = tuple(replace(asked(key), type="choice") for key in by_key)
    return record(questions=questions, answers=by_key, **fields)


def samples(metrics: Metrics, names: list[str] | None = None) -> dict[str, float]:
    """The samples of a scrape, by name and label values."""
    text, content_type = metrics.render(names=names)
    assert content_type.startswith("text/plain")
    families = text_string_to_metric_families(text)
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
    }


def in_child(work: Callable[[], None]) -> None:
    """Have a process do it, and end."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    os.waitpid(child, 0)


def add_to(row: memoryview[float]) -> None:
    row[0] += 1


def test_a_server_that_has_done_nothing_shows_every_name() -> None:
    shown = samples(Metrics(Board()))
    assert set(shown.values()) == {0}
    assert {name.split()[0] for name in shown} == {
        "svc_decisions_total",
        "svc_cache_hits_total",
        "svc_answers_total",
        "svc_abstains_total",
        "svc_decide_duration_seconds_bucket",
        "svc_decide_duration_seconds_count",
        "svc_decide_duration_seconds_sum",
        "svc_http_responses_total",
        "svc_jobs_open",
        "svc_job_rows_left",
    }


def test_every_status_that_is_documented_is_shown_before_it_happens() -> None:
    documented = {
        status
        for item in document()["paths"].values()
        for operation in item.values()
        for status in operation["responses"]
        if status.isdigit()
    }
    shown = {name.split()[1] for name in samples(Metrics(Board()), ["svc_http_responses_total"])}
    assert shown == documented | {"405"}


def test_the_work_that_jobs_still_have_is_shown() -> None:
    shown = samples(Metrics(Board(), backlog=lambda: (2, 1_500)))
    assert (shown["svc_jobs_open"], shown["svc_job_rows_left"]) == (2, 1_500)


def test_a_decision_is_counted_with_its_answers() -> None:
    metrics = Metrics(Board())
    metrics.decided(0.2, decided(SURE, UNSURE, SKIPPED))
    metrics.decided(0.001, decided(SURE, cached=True))
    shown = samples(metrics)
    assert shown["svc_decisions_total"] == 2
    assert shown["svc_cache_hits_total"] == 1
    assert shown["svc_answers_total"] == 3
    assert shown["svc_abstains_total"] == 1
    assert shown["svc_decide_duration_seconds_sum"] == pytest.approx(0.201)


def test_decisions_are_counted_by_project_and_models() -> None:
    metrics = Metrics(Board())
    for project in ("shop", "shop", "desk"):
        metrics.decided(
            0.1, decided(SURE, project=project, model="@a/m,b", cost_usd=0.5, input_tokens=30)
        )
    shown = samples(metrics)
    assert shown["svc_project_decisions_total @a/m,b shop"] == 2
    assert shown["svc_project_cost_dollars_total @a/m,b shop"] == 1.0
    assert shown["svc_project_input_tokens_total @a/m,b shop"] == 60
    assert shown["svc_project_decisions_total @a/m,b desk"] == 1


def test_answers_are_counted_by_question_type() -> None:
    metrics = Metrics(Board())
    metrics.decided(0.1, decided(SURE, UNSURE, SKIPPED, project="shop", model="m"))
    shown = samples(metrics)
    assert shown["svc_project_answers_total m shop choice"] == 2
    assert shown["svc_project_abstains_total m shop choice"] == 1


def test_names_that_callers_choose_give_a_bounded_number_of_series() -> None:
    metrics = Metrics(Board())
    for number in range(2 * TYPE_SERIES):
        metrics.decided(0.1, decided(SURE, project=f"p{number}", model="m"))
    metrics.decided(0.1, decided(SURE, project="p", model="m" * 1_000))
    shown = samples(metrics)
    projects = [name for name in shown if name.startswith("svc_project_decisions_total")]
    types = [name for name in shown if name.startswith("svc_project_answers_total")]
    assert (len(projects), len(types)) == (PROJECT_SERIES, TYPE_SERIES)
    assert sum(shown[name] for name in projects) == 2 * TYPE_SERIES + 1
    assert shown["svc_project_answers_total other other other"] == TYPE_SERIES + 2


def test_a_project_that_invents_models_takes_no_series_of_others() -> None:
    metrics = Metrics(Board())
    for number in range(2 * TYPE_SERIES):
        metrics.decided(0.1, decided(SURE, project="loud", model=f"m{number}"))
    metrics.decided(0.1, decided(SURE, project="quiet", model="m"))
    shown = samples(metrics)
    assert shown["svc_project_decisions_total m quiet"] == 1
    assert shown["svc_project_answers_total m quiet choice"] == 1
    rest = 2 * TYPE_SERIES - PROJECT_MODELS
    assert shown[f"svc_project_decisions_total {REST} loud"] == rest
    assert shown["svc_project_decisions_total m0 loud"] == 1


def test_processes_that_come_one_after_the_other_count_no_more_models_of_a_project() -> None:
    board = Board()
    for process in range(20):
        in_child(lambda n=process: invent(Metrics(board), f"m{n}"))
    Metrics(board).decided(0.1, decided(SURE, project="quiet", model="m"))
    shown = samples(Metrics(board))
    assert shown["svc_project_decisions_total m quiet"] == 1
    loud = [name for name in shown if re.match("svc_project_decisions_total .* loud", name)]
    assert len(loud) == PROJECT_MODELS + 1


def invent(metrics: Metrics, name: str) -> None:
    """Have a project count one model more than it may."""
    for number in range(PROJECT_MODELS + 1):
        metrics.decided(0.1, decided(SURE, project="loud", model=f"{name}-{number}"))


def test_a_duration_is_counted_in_every_bucket_whose_bound_it_does_not_exceed() -> None:
    metrics = Metrics(Board())
    for seconds in (0.0, BUCKETS[0], 0.3, BUCKETS[-1], 1_000.0):
        metrics.decided(seconds, decided())
    shown = samples(metrics)
    counts = [shown[f"svc_decide_duration_seconds_bucket {bound}"] for bound in BUCKETS]
    assert counts == [2.0] * 7 + [3.0] * 7 + [4.0]
    assert shown["svc_decide_duration_seconds_bucket +Inf"] == 5
    assert shown["svc_decide_duration_seconds_count"] == 5


def test_responses_are_counted_by_status_alone() -> None:
    metrics = Metrics(Board())
    for status in (200, 502, 200, 599, 100):
        metrics.responded(status)
    shown = samples(metrics, ["svc_http_responses_total"])
    assert {name: count for name, count in shown.items() if count} == {
        "svc_http_responses_total 100": 1,
        "svc_http_responses_total 200": 2,
        "svc_http_responses_total 502": 1,
        "svc_http_responses_total 599": 1,
    }


class Yielding:
    """A row of numbers of which each is read just before another thread runs."""

    def __init__(self, row: memoryview[float]) -> None:
        self._row = row

    def __getitem__(self, column: int) -> float:
        value = self._row[column]
        time.sleep(0)
        return value

    def __setitem__(self, column: int, value: float) -> None:
        self._row[column] = value


class YieldingBoard(Board):
    def new_row(self) -> Any:
        return Yielding(super().new_row())


def test_threads_that_count_at_the_same_time_lose_nothing() -> None:
    metrics, sure = Metrics(YieldingBoard()), decided(SURE)

    def count() -> None:
        for _ in range(200):
            metrics.decided(1.0, sure)
            metrics.responded(200)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown = samples(metrics)
    assert shown["svc_decisions_total"] == shown["svc_answers_total"] == 1_600
    assert (
        shown["svc_http_responses_total 200"] == shown["svc_decide_duration_seconds_sum"] == 1_600
    )


def test_a_scrape_shows_the_sums_of_all_processes_also_of_those_that_ended() -> None:
    board = Board()
    metrics = Metrics(board)
    metrics.responded(200)
    for _ in range(3):
        in_child(lambda: Metrics(board).responded(200))
    assert samples(metrics)["svc_http_responses_total 200"] == 4


def test_processes_go_on_with_the_rows_of_those_that_ended_and_of_no_others() -> None:
    board = Board()
    living = board.new_row()
    for _ in range(20):
        in_child(lambda: add_to(board.new_row()))
    living[0] += 1
    assert living[0] == 1 and board.sums()[0] == 21


def test_more_processes_than_rows_take_nothing_of_others() -> None:
    board = Board()
    rows = [board.new_row() for _ in range(ROWS + 3)]
    for row in rows:
        row[0] += 1
    assert {row[0] for row in rows} == {1} and board.sums()[0] == ROWS


def test_processes_that_come_and_go_leave_the_models_of_one_that_stays_alone() -> None:
    board = Board()
    staying = Metrics(board)
    for number in range(PROCESSES + 3):
        in_child(lambda n=number: Metrics(board).decided(0.1, decided(SURE, project=f"p{n}")))
    staying.decided(0.1, decided(SURE, project="shop", model="m"))
    found = board.projects.sums()
    assert len(found) == PROJECT_SERIES + 1 and found["shop\x1fm"][0] == 1
    assert sum(numbers[0] for numbers in found.values()) == PROCESSES + 4


def test_two_servers_in_one_process_count_apart() -> None:
    one, other = Metrics(Board()), Metrics(Board())
    one.responded(200)
    assert samples(other)["svc_http_responses_total 200"] == 0


def test_the_quota_is_read_at_each_scrape() -> None:
    left = iter([9, 8, 7])
    metrics = Metrics(Board(), lambda: next(left))  # the first is read when it is registered
    assert samples(metrics)["svc_daily_quota_remaining"] == 8
    assert samples(metrics)["svc_daily_quota_remaining"] == 7


def test_a_quota_that_cannot_be_read_is_left_out_of_the_scrape() -> None:
    def fail() -> int:
        raise StorageError("the database is gone")

    shown = samples(Metrics(Board(), fail))
    assert "svc_daily_quota_remaining" not in shown
    assert "svc_decisions_total" in shown


@pytest.mark.parametrize("version", ["1.0.0", '"1.0.0"'])
def test_a_scraper_that_wants_openmetrics_gets_it(version: str) -> None:
    wanted = f"application/openmetrics-text; version={version}"
    text, content_type = Metrics(Board()).render(wanted)
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize("kind", ["application/openmetrics-text", "text/plain"])
@pytest.mark.parametrize("version", ["x", "1.x", '"', "²", "1" * 5_000, "1.0.0.0.0.0"])
def test_a_scraper_that_wants_a_version_that_is_none_gets_plain_text(
    kind: str, version: str
) -> None:
    _, content_type = Metrics(Board()).render(f"{kind}; version={version}")
    assert content_type.startswith("text/plain")


def test_a_budget_that_is_set_later_is_found_by_its_name() -> None:
    budgets: list[Any] = []
    metrics = Metrics(Board(), dollars=lambda: budgets)
    budgets.append((("project", "shop", "day"), 5.0, 1.0))
    found = samples(metrics, ["svc_budget_limit_dollars"])
    assert list(found.values()) == [5.0]
