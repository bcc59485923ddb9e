"""The engine in process, against scripted providers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from svc import inprocess
from svc.errors import InvalidRequest, ModelError, QuotaSpent, SettingsError, Timeout
from svc.inprocess import InProcess
from svc.schemas import load_decision
from tests.cli.processes import MODEL, NOUL, YES
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, Silent, always

WAIT_S = 10.0  # seconds, only ever reached by a failing test
BODY = {"state": "late", "questions": NOUL, "debias": False}


def decide(engine: InProcess, **fields: object) -> dict[str, Any]:
    return engine.decide(load_decision({**BODY, **fields})).response()


@pytest.fixture(autouse=True)
def _own_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.delenv("SVC_MODEL", raising=False)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedProvider]:
    with ScriptedProvider(always(YES)) as scripted:
        monkeypatch.setenv("SVC_PROVIDER_OWN_URL", scripted.url)
        monkeypatch.setenv("SVC_PROVIDER_URL", scripted.url)
        yield scripted


def test_a_decision_is_answered_like_the_server_does(provider: ScriptedProvider) -> None:
    with inprocess.engine(demo=False, concurrency=2) as engine:
        response = decide(engine, model=MODEL)
    assert response["id"].startswith("dec_") and response["model"] == MODEL
    assert response["answers"]["late"] == {"type": "noul", "noul": 0.9, "calibrated": False}


def test_nothing_is_remembered_from_one_decision_to_the_next(provider: ScriptedProvider) -> None:
    with inprocess.engine(demo=False, concurrency=2) as engine:
        responses = [decide(engine, model=MODEL) for _ in range(2)]
    assert [response["cached"] for response in responses] == [False, False]
    assert responses[0]["id"] < responses[1]["id"]


def test_the_demonstration_model_answers_in_process() -> None:
    with inprocess.engine(demo=True, concurrency=2) as engine:
        assert decide(engine, model="@demo/lexical")["model"] == "@demo/lexical"
        assert "demo" in engine.catalog


def test_settling_names_the_model_that_is_asked_by_default(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_MODEL", MODEL)
    with inprocess.engine(demo=False, concurrency=2) as engine:
        assert engine.settle({"mode": "auto"}) == {"mode": "auto", "model": MODEL}
        race = {"model": {"race": [MODEL, "@own/other"]}}
        assert engine.settle(race) == race


def test_settling_refuses_a_model_that_cannot_be_asked(provider: ScriptedProvider) -> None:
    with inprocess.engine(demo=False, concurrency=2) as engine:
        with pytest.raises(InvalidRequest, match="'none' is not configured"):
            engine.settle({"model": [MODEL, "@none/m"]})


def test_a_setting_that_cannot_be_used_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_DAILY_LIMIT", "none")
    with pytest.raises(SettingsError, match="SVC_DAILY_LIMIT"):
        with inprocess.engine(demo=False, concurrency=2):
            pass


@pytest.mark.parametrize(
    "model", ["m", {"council": ["m", "n"]}, ["m", MODEL], {"cascade": ["m", "n"]}]
)
def test_a_decision_for_which_the_budget_did_not_suffice_is_none(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, model: object
) -> None:
    """Also where an answer came about, with one order, a council's rest or another model."""
    monkeypatch.setenv("SVC_DAILY_LIMIT", "1")
    with inprocess.engine(demo=False, concurrency=2) as engine:
        with pytest.raises(QuotaSpent):
            decide(engine, model=model, debias=True)
        assert decide(engine, model=MODEL)["model"] == MODEL


def test_the_budget_is_counted_over_all_threads(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_DAILY_LIMIT", "5")

    def decided(number: int) -> bool:
        try:
            decide(engine, model="m", state=number)
        except QuotaSpent:
            return False
        return True

    with inprocess.engine(demo=False, concurrency=9) as engine:
        with ThreadPoolExecutor(9) as threads:
            assert sum(threads.map(decided, range(9))) == 5
    assert len(provider.bodies) == 5


def test_a_failure_of_the_model_is_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedProvider(always(Reply(status=400))) as failing:
        monkeypatch.setenv("SVC_PROVIDER_OWN_URL", failing.url)
        with inprocess.engine(demo=False, concurrency=2) as engine, pytest.raises(ModelError):
            decide(engine, model=MODEL)


def test_cutting_ends_what_is_under_way_and_what_is_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, ended = threading.Event(), threading.Event()

    def behave(body: Json, n: int, headers: object) -> Behaviour:
        asked.set()
        return Silent()

    def cut_off() -> None:
        with pytest.raises(Timeout):
            decide(engine, model=MODEL)
        ended.set()

    with ScriptedProvider(behave) as silent:
        monkeypatch.setenv("SVC_PROVIDER_OWN_URL", silent.url)
        with inprocess.engine(demo=False, concurrency=2) as engine:
            thread = threading.Thread(target=cut_off)
            thread.start()
            assert asked.wait(WAIT_S)
            engine.cut()
            assert ended.wait(WAIT_S)
            thread.join()
            with pytest.raises(Timeout):
                decide(engine, model=MODEL)


@pytest.mark.parametrize(
    ("rpm", "model", "at_once"),
    [("20", MODEL, 10), ("20", {"council": [MODEL] * 5}, 2), ("1", MODEL, 1), ("1000", MODEL, 16)],
)
def test_no_more_decisions_at_once_than_a_rate_limit_lets_through(
    provider: ScriptedProvider,
    monkeypatch: pytest.MonkeyPatch,
    rpm: str,
    model: object,
    at_once: int,
) -> None:
    monkeypatch.setenv("SVC_PROVIDER_OWN_RPM", rpm)
    request = load_decision({**BODY, "model": model, "debias": True})
    with inprocess.engine(demo=False, concurrency=2) as engine:
        assert engine.at_once(request, 16) == at_once


def test_a_plan_of_too_many_calls_is_found_before_the_first_line(
    provider: ScriptedProvider,
) -> None:
    thinking = {f"q{n}": {**NOUL["late"], "think": True} for n in range(33)}
    request = load_decision({**BODY, "questions": thinking, "model": MODEL, "debias": True})
    with inprocess.engine(demo=False, concurrency=2) as engine:
        with pytest.raises(InvalidRequest, match="needs 66 model calls, at most 64"):
            engine.at_once(request, 16)
