from __future__ import annotations

import os
import threading

import pytest

from svc.metrics import Board, Metrics
from svc.tallies import OTHERS, PROCESSES
from svc.usage import MODELS, Counts, UsageBoard
from tests.test_metrics import samples

ONE = Counts(calls=2, failures=1, input_tokens=100, output_tokens=5, cost_usd=0.5)


def test_nothing_is_counted_at_first() -> None:
    assert UsageBoard().sums() == {}


def test_counts_of_a_model_add_up() -> None:
    board = UsageBoard()
    usage = board.open()
    usage.add("@a/m", ONE)
    usage.add("@a/m", Counts(mass=0.75, readings=1))
    usage.add("@b/m", ONE)
    assert board.sums()["@a/m"] == Counts(2, 1, 100, 5, 0.5, 0.75, 1)
    assert board.sums()["@b/m"] == ONE


def test_the_counts_of_every_process_are_seen_by_all() -> None:
    board = UsageBoard()
    usage = board.open()
    usage.add("m", ONE)
    child = os.fork()
    if child == 0:
        board.open().add("m", ONE)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert board.sums()["m"].calls == 4


def test_a_model_beyond_all_places_counts_as_one_of_the_others() -> None:
    board = UsageBoard()
    usage = board.open()
    for number in range(MODELS + 20):
        usage.add(f"m{number}", ONE)
    sums = board.sums()
    assert len(sums) == MODELS
    assert sum(counts.calls for counts in sums.values()) == 2 * (MODELS + 20)
    assert sums[OTHERS].calls == 2 * 21


def test_a_name_that_is_too_long_counts_as_one_of_the_others() -> None:
    board = UsageBoard()
    board.open().add("\u00e9" * 300, ONE)
    assert board.sums() == {OTHERS: ONE}


def test_processes_beyond_all_places_take_nothing_of_others() -> None:
    board = UsageBoard()
    first = board.open()
    for _ in range(PROCESSES):
        usage = board.open()
    usage.add("other", ONE)
    first.add("m", ONE)
    assert board.sums() == {"m": ONE}


def test_threads_lose_no_count() -> None:
    board = UsageBoard()
    usage = board.open()
    threads = [
        threading.Thread(target=lambda: [usage.add("m", Counts(calls=1)) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert board.sums()["m"].calls == 2_000


def test_the_metrics_show_every_model() -> None:
    board = UsageBoard()
    usage = board.open()
    usage.add("@a/m", ONE)
    usage.add("@a/m", Counts(mass=0.75, readings=1))
    shown = samples(Metrics(Board(), models=board.sums))
    assert shown["svc_model_calls_total @a/m"] == 2
    assert shown["svc_model_failures_total @a/m"] == 1
    assert shown["svc_model_cost_dollars_total @a/m"] == pytest.approx(0.5)
    assert shown["svc_model_tokens_total input @a/m"] == 100
    assert shown["svc_model_tokens_total output @a/m"] == 5
    assert shown["svc_model_label_mass_sum @a/m"] == pytest.approx(0.75)
    assert shown["svc_model_label_mass_count @a/m"] == 1


def test_a_hostile_model_id_stays_inside_its_label() -> None:
    board = UsageBoard()
    board.open().add('x"} 1\nsvc_decisions_total 99', ONE)
    shown = samples(Metrics(Board(), models=board.sums))
    assert shown["svc_decisions_total"] == 0
