"""Jobs whose rows are answered in batches, against the double of a Batch API."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svc import limits
from svc.app import create_app
from svc.bootstrap import build
from svc.bulk import batched_jobs, book, leaving, sending
from svc.bulk.answering import JobEnded
from svc.bulk.batch_apis import BatchApis
from svc.bulk.batched_job import ITS_TURN, BatchedJob
from svc.bulk.book import rows_of_block, rows_that_fit
from svc.bulk.job_rounds import JobRounds
from svc.bulk.stripping import strip
from svc.errors import Pending
from svc.records import Model
from svc.schemas import load_template
from svc.settings import load
from svc.spending.purses import LOOKED_AT_EVERY_S
from svc.store import NANO, Budget, Budgets, Forgetting, Per, ProjectKeys, Scope, SpoolFile, Subject
from tests.batching import BatchDouble, Lost
from tests.bulk.conftest import World, until
from tests.preferring import PreferringModel
from tests.scripted import Json, Reply, ScriptedProvider, completion, error
from tests.store.copies import copied

# Ids, times and prices differ between a job that asks directly and one that does not.
CHANGING = {"id", "latency_ms", "cost_usd", "cached"}
URL = "http://127.0.0.1:1/v1"
NOUL = {"late": {"type": "noul", "instructions": "Is the parcel late?"}}


def said(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
    """A reply that depends on the parcel and the order of the options."""
    text = json.dumps(body)
    number = re.search(r"Parcel (\d+)", text)
    seed = hash((number and number[1], text.find("yes") < text.find("no"), body["model"]))
    p = 0.5 + seed % 499 / 1_000
    return Reply(completion("yes", [{"yes": p, "no": 1 - p}]))


Make = Callable[..., World]


@pytest.fixture
def double() -> Iterator[BatchDouble]:
    with BatchDouble(said) as made:
        yield made


@pytest.fixture
def world(tmp_path: Path, double: BatchDouble) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(**environ: str) -> World:
            settings = load(
                {
                    "SVC_DB": str(copied(tmp_path / "svc.db")),
                    "SVC_MODEL": "@own/m",
                    "SVC_PROVIDER_OWN_URL": double.url,
                    "SVC_PROVIDER_OWN_PRICE": "2,4",
                    "SVC_PROVIDER_OWN_BATCH": "1",
                    "SVC_BATCH_POLL_S": "0.1",
                    "SVC_MASTER_KEY": "master",
                    **environ,
                }
            )
            services = build(settings)
            stack.callback(services.close)
            provider = stack.enter_context(ScriptedProvider(said))
            return World(create_app(services), settings, provider)

        yield make


def submit(one: World, count: int = 40, **fields: Any) -> str:
    given = {"batch": "provider", "questions": NOUL, "debias": True, **fields}
    return one.submit(count, about="Parcel", **given)


def steady(lines: list[Json], *also: str) -> list[Json]:
    left_out = CHANGING | set(also)
    return [
        {**line, "decision": {k: v for k, v in line["decision"].items() if k not in left_out}}
        for line in lines
    ]


def books(one: World) -> list[Path]:
    return list(one.services.spool.folder.glob("book_*"))


def test_batches_give_the_answers_of_direct_calls_at_half_the_price(
    world: Make, double: BatchDouble
) -> None:
    # By this address it counts as another machine, whose models cost what the price says.
    elsewhere = double.url.replace("127.0.0.1", "0.0.0.0")
    one = world(SVC_CACHE_SIZE="0", SVC_PROVIDER_OWN_URL=elsewhere, SVC_PROVIDER_OWN_RPM="100000")
    batched = submit(one)
    with one.running():
        found = one.ended(batched)
        until(lambda: not books(one))
    assert (found["answered"], found["failed"]) == (40, 0)
    # One row was asked directly, to learn how the model can be asked.
    assert double.direct == 2 and len(double.carried_out) == 2 * 39
    assert double.creations == 1 and set(double.carried_out.values()) == {1}
    assert not double.files and one.spooled() == []
    directly = one.submit(40, about="Parcel", questions=NOUL, debias=True)
    with one.running():
        asked = one.ended(directly)
    assert steady(one.results(batched)) == steady(one.results(directly))
    assert asked["cost_usd"] > 0
    assert found["cost_usd"] == pytest.approx(asked["cost_usd"] * (39 / 2 + 1) / 40)


def thinking(body: Json, word: str = " thought") -> Reply:
    """Says yes after 1,900 tokens of thought where it may, with the log-probabilities of each."""
    words = {f"{word}{number}": 0.5 ** (1 + number) for number in range(20)}
    spelled = [{"<think>": 1.0}, *[words] * 1_900, {"</think>": 1.0}, {"yes": 0.75, "no": 0.25}]
    cut = spelled[: body["max_tokens"]]
    text = "".join(next(iter(one)) for one in cut)
    return Reply(completion(text, cut, "stop" if cut == spelled else "length"))


def test_replies_after_much_thought_are_read_the_first_time(
    world: Make, double: BatchDouble
) -> None:
    """A model that thinks at length with log-probabilities has replies of megabytes."""
    double.handler = lambda body, *_: thinking(body)
    one = world(SVC_CACHE_SIZE="0")
    batched = submit(one, 9)
    with one.running():
        found = one.ended(batched)
    assert (found["answered"], found["failed"]) == (9, 0)
    assert {line["decision"]["mode"] for line in one.results(batched)} == {"logprobs"}
    # A reply has 2.4 MB, so that all of them have more than a file may have in any case.
    assert double.totals == [16] and set(double.carried_out.values()) == {1}


def test_a_reply_that_is_too_long_is_one_that_cannot_be_read(
    world: Make, double: BatchDouble
) -> None:
    """It is not sent again as one that has failed is, but the model is asked in another way."""
    in_words = PreferringModel({"yes": 3.0})

    def answers(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
        if not body.get("logprobs"):
            return Reply(completion(in_words.verbal_reply(body)))
        if "Parcel 1." in json.dumps(body):
            return said(body)
        return thinking({"max_tokens": 2_000}, word=" " + 100 * "w")

    double.handler = answers
    one = world(SVC_CACHE_SIZE="0")
    batched = submit(one, 4, debias=False)
    with one.running():
        found = one.ended(batched)
    lines = one.results(batched)
    assert (found["answered"], found["failed"]) == (4, 0)
    assert [line["decision"]["mode"] for line in lines] == ["logprobs"] + 3 * ["verbal"]
    assert double.totals == [3, 3]


def test_a_model_that_the_server_knows_is_not_asked_directly_again(
    world: Make, double: BatchDouble
) -> None:
    one = world(SVC_CACHE_SIZE="0")
    first = submit(one, 3)
    with one.running():
        one.ended(first)
        asked = double.direct
        one.ended(submit(one, 3))
    assert double.direct == asked and double.creations == 2


def test_expired_calls_lost_responses_and_an_errors_file_cost_no_row_and_nothing_twice(
    world: Make, double: BatchDouble
) -> None:
    one = world()
    failing = {"Parcel 7 ", "Parcel 8."}

    def answers(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
        if any(text in json.dumps(body) for text in failing):
            return Reply(error("it broke", code="server_error"), status=400)
        return said(body, n, headers)

    double.handler = answers
    double.expiring = {0: 0.4, 1: 0.3}
    double.lost_uploads, double.lost_creations = {0, 1}, {0, 2}
    job_id = submit(one)
    with one.running():
        found = one.ended(job_id)
        until(lambda: not books(one))
    assert (found["answered"], found["failed"]) == (39, 1)
    lines = one.results(job_id)
    assert [line["row"] for line in lines if "error" in line] == [8]
    assert lines[7]["error"]["type"] == "model_error"
    # Ways of asking that the provider refuses for one row are rounds of their own.
    assert set(double.carried_out.values()) == {1} and double.creations >= 3
    until(lambda: not double.files)


def test_what_a_provider_refuses_of_a_call_is_left_out_of_it_and_the_row_answered(
    world: Make, double: BatchDouble
) -> None:
    def answers(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
        if "Parcel 8." in json.dumps(body) and "temperature" in body:
            return Reply(error("Unsupported parameter: 'temperature'", param="temperature"), 400)
        return said(body, n, headers)

    double.handler = answers
    one = world()
    job_id = submit(one)
    with one.running():
        found = one.ended(job_id)
    assert (found["answered"], found["failed"]) == (40, 0)


def test_a_cascade_goes_its_rounds(world: Make, double: BatchDouble) -> None:
    one = world(SVC_CACHE_SIZE="0")
    plan = {"cascade": ["@own/m", "@own/large"], "escalate_below": 0.8}
    batched = submit(one, model=plan)
    with one.running():
        one.ended(batched)
        directly = one.submit(40, about="Parcel", questions=NOUL, debias=True, model=plan)
        one.ended(directly)
    lines = one.results(batched)
    assert steady(lines) == steady(one.results(directly))
    assert {line["decision"]["model"] for line in lines} == {"@own/m", "@own/large"}
    assert set(double.carried_out.values()) == {1} and double.creations == 2


def test_it_is_shown_who_is_at_work_and_how_far(world: Make, double: BatchDouble) -> None:
    double.takes_s = 3.0
    one = world()
    job_id = submit(one)
    told = re.compile(
        r"provider own, which is at work: [\d,]+ of 78 requests done in 1 batch, round 1"
    )
    with one.running():
        until(lambda: bool(told.fullmatch(one.job(job_id)["waiting_for"] or "")))
        found = one.job(job_id)
        assert (found["status"], found["answered"], found["ends_at"]) == ("running", 1, None)
        assert one.ended(job_id)["waiting_for"] is None


def test_another_job_goes_on_beside_one_that_waits_for_a_provider(
    world: Make, double: BatchDouble
) -> None:
    double.takes_s = 3_600.0
    one = world()
    waiting = submit(one)
    with one.running():
        until(lambda: double.creations == 1)
        directly = one.submit(40, about="Parcel", questions=NOUL, debias=True)
        one.ended(directly)
        assert one.job(waiting)["status"] == "running"


def test_a_cancelled_job_leaves_nothing_here_or_at_its_provider(
    world: Make, double: BatchDouble
) -> None:
    double.takes_s = 3_600.0
    one = world()
    job_id = submit(one)
    with one.running():
        until(lambda: double.creations == 1)
        one.client.post(f"/v1/batch/{job_id}/cancel")
        until(lambda: not books(one) and not double.files)
    assert [batch.cancelled for batch in double.batches.values()] == [True]
    found = one.job(job_id)
    assert (found["status"], found["answered"]) == ("cancelled", 1) and not double.carried_out


def test_many_ended_jobs_whose_provider_fails_take_few_threads(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    double.takes_s = 3_600.0
    one, well, asked = world(), threading.Event(), double._files

    def files(method: str, *given: Any) -> Reply:
        if method == "DELETE" and not well.is_set():
            return Reply({"error": {"message": "down"}}, 503)
        return asked(method, *given)

    monkeypatch.setattr(double, "_files", files)
    monkeypatch.setattr(leaving, "LONGEST_PAUSE_S", 1.0)
    # Jobs run no longer than there are some.
    job_id = submit(one, 2)
    with one.running():
        for number in range(1, 13):
            job_id = submit(one, 2) if number > 1 else job_id
            until(lambda number=number: double.creations == number)  # type: ignore[misc]
            one.client.post(f"/v1/batch/{job_id}/cancel")
        until(lambda: all(batch.cancelled for batch in double.batches.values()))
        names = Counter(thread.name for thread in threading.enumerate())
        assert len(books(one)) == 12 and 0 < names["svc-leaving"] <= leaving.AT_ONCE
        assert names["svc-batch"] == 0
        well.set()
        until(lambda: not books(one) and not double.files)


def leaves_nothing_once_cancelled(
    one: World, double: BatchDouble, job_id: str, tried: threading.Event, *then: threading.Event
) -> None:
    """Cancel a job when something was `tried`; nothing of it is left after what comes `then`."""
    with one.running():
        assert tried.wait(30)
        one.client.post(f"/v1/batch/{job_id}/cancel")
        assert all(event.wait(30) for event in then)
        until(lambda: not books(one) and not double.files)


def test_a_batch_that_was_perhaps_never_created_leaves_nothing_either(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, answer = threading.Event(), double.answer

    def answered(method: str, path: str, *given: Any) -> tuple[int, Any]:
        if method == "POST" and path.endswith("/batches"):
            tried.set()
            raise Lost
        return answer(method, path, *given)

    monkeypatch.setattr(double, "answer", answered)
    monkeypatch.setattr(sending, "CREATED_WITHIN_S", 1.0)
    one = world()
    leaves_nothing_once_cancelled(one, double, submit(one, 2), tried)


def test_a_file_that_comes_to_be_after_its_job_was_cancelled_is_deleted_too(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its upload is cut off, and stored two seconds later."""
    tried, stored, answer = threading.Event(), threading.Event(), double.answer

    def answered(method: str, path: str, *given: Any) -> tuple[int, Any]:
        if method == "POST" and path.endswith("/files"):
            tried.set()
            time.sleep(2.0)
            stored.set()
        return answer(method, path, *given)

    monkeypatch.setattr(double, "answer", answered)
    one = world()
    leaves_nothing_once_cancelled(one, double, submit(one, 2), tried, stored)


def test_a_batch_that_comes_to_be_after_its_job_was_cancelled_is_cancelled_too(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its creation has no response, and no list shows it for two seconds."""
    double.takes_s = 3_600.0
    tried, answer, shown_at = threading.Event(), double.answer, [0.0]

    def answered(method: str, path: str, *given: Any) -> tuple[int, Any]:
        if method == "POST" and path.endswith("/batches"):
            answer(method, path, *given)
            shown_at[0] = time.monotonic() + 2.0
            tried.set()
            raise Lost
        if "/batches?" in path and time.monotonic() < shown_at[0]:
            return 200, {"object": "list", "data": [], "has_more": False}
        return answer(method, path, *given)

    monkeypatch.setattr(double, "answer", answered)
    one = world()
    leaves_nothing_once_cancelled(one, double, submit(one, 2), tried)
    assert [batch.cancelled for batch in double.batches.values()] == [True]


def test_a_provider_whose_lists_never_end_keeps_nothing_of_others_waiting(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, answer, creations = threading.Event(), double.answer, Counter[str]()

    def answered(method: str, path: str, *given: Any) -> tuple[int, Any]:
        if method == "POST" and path.endswith("/batches"):
            creations["tried"] += 1
            raise Lost
        if "/batches?" in path:
            ended.wait(1.0)
            return 200, {"object": "list", "data": [{"id": "batch_x"}], "has_more": True}
        return answer(method, path, *given)

    monkeypatch.setattr(double, "answer", answered)
    with BatchDouble(said) as other:
        other.takes_s = 3_600.0
        well = {"SVC_PROVIDER_WELL_URL": other.url, "SVC_PROVIDER_WELL_BATCH": "1"}
        one = world(**well, SVC_PROVIDER_WELL_PRICE="2,4")
        # Some of them have asked the other provider as well.
        council = {"council": ["@own/m", "@well/m"]}
        jobs = [submit(one, 2, model=model) for model in ["@own/m", council] * 3]
        with one.running():
            until(lambda: creations["tried"] >= 6 and other.creations >= 3)
            # Until the jobs have heard of the batches at the other provider.
            time.sleep(1.0)
            for job_id in jobs:
                one.client.post(f"/v1/batch/{job_id}/cancel")
            until(lambda: len(one.services.jobs.open()) == 0)
            jobs = [submit(one, 2, model="@well/m")]
            until(lambda: other.creations == 4)
            one.client.post(f"/v1/batch/{jobs[0]}/cancel")
            until(lambda: not other.files and len(books(one)) == 6)
            ended.set()


def test_what_jobs_left_at_a_provider_that_hangs_keeps_that_of_others_waiting_for_moments(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving, "EXCHANGE_S", 0.2)
    hangs, over, answer = threading.Event(), threading.Event(), double.answer

    def answered(method: str, path: str, *given: Any) -> tuple[int, Any]:
        if hangs.is_set() and "chat" not in path:
            over.wait(60)
        return answer(method, path, *given)

    monkeypatch.setattr(double, "answer", answered)
    with BatchDouble(said) as other:
        double.takes_s = other.takes_s = 3_600.0
        well = {"SVC_PROVIDER_WELL_URL": other.url, "SVC_PROVIDER_WELL_BATCH": "1"}
        one = world(**well, SVC_PROVIDER_WELL_PRICE="2,4")
        jobs = [submit(one, 2) for _ in range(8)] + [submit(one, 2, model="@well/m")]
        with one.running():
            until(lambda: double.creations == 8 and other.creations == 1)
        for job_id in jobs:
            one.client.post(f"/v1/batch/{job_id}/cancel")
        hangs.set()
        with one.running():
            until(lambda: not other.files and len(books(one)) == 8)
            over.set()
            hangs.clear()


def test_a_job_is_cancelled_also_while_its_results_do_not_come(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, over, answer = threading.Event(), threading.Event(), double.answer

    def answered(method: str, path: str, *given: Any) -> tuple[int, Any]:
        if path.endswith("/content"):
            asked.set()
            over.wait(60)
        return answer(method, path, *given)

    monkeypatch.setattr(double, "answer", answered)
    one = world()
    job_id = submit(one)
    with one.running():
        assert asked.wait(30)
        one.client.post(f"/v1/batch/{job_id}/cancel")
        until(lambda: not books(one) and not double.files)
        over.set()


def test_a_job_that_was_cancelled_while_nothing_ran_leaves_nothing_after_the_next_start(
    world: Make, double: BatchDouble
) -> None:
    double.takes_s = 3_600.0
    one = world()
    job_id = submit(one)
    with one.running():
        until(lambda: double.creations == 1)
    one.client.post(f"/v1/batch/{job_id}/cancel")
    assert books(one) and double.files
    with one.running(idle_s=2.0):
        until(lambda: not books(one) and not double.files)
    assert [batch.cancelled for batch in double.batches.values()] == [True]


def test_a_job_waits_while_its_provider_is_not_configured(world: Make, double: BatchDouble) -> None:
    one = world()
    double.takes_s = 3_600.0
    job_id = submit(one)
    with one.running():
        until(lambda: double.creations == 1)
    configured = one.settings
    one.settings = replace(configured, providers={})
    with one.running():
        until(lambda: "is not configured" in (one.job(job_id)["waiting_for"] or ""))
    double.takes_s, one.settings = 0.0, configured
    with one.running():
        assert one.ended(job_id)["answered"] == 40
        until(lambda: not books(one))
    assert double.creations == 1 and not double.files


def test_a_job_waits_while_its_model_leads_to_another_provider(
    world: Make, double: BatchDouble
) -> None:
    """One start with the key of another provider alone asks nothing twice."""
    with BatchDouble(said) as other:
        keys = {"OPENAI_API_KEY": "sk-first", "SVC_PROVIDER_OPENAI_URL": double.url}
        one = world(SVC_MODEL="m", **keys)
        double.takes_s = 3_600.0
        job_id = submit(one)
        with one.running():
            until(lambda: double.creations == 1)
        first = one.settings
        keys = {"GROQ_API_KEY": "gsk-other", "SVC_PROVIDER_GROQ_URL": other.url}
        mine = {"SVC_DB": str(first.db), "SVC_MASTER_KEY": "master", "SVC_MODEL": "m"}
        one.settings = load({**mine, **keys, "SVC_BATCH_POLL_S": "0.1"})
        with one.running():
            until(lambda: "are at provider openai" in (one.job(job_id)["waiting_for"] or ""))
        assert (other.creations, other.direct) == (0, 0)
        double.takes_s, one.settings = 0.0, first
        with one.running():
            assert one.ended(job_id)["answered"] == 40
    assert double.creations == 1


def test_a_job_waits_while_there_is_no_place_for_its_batches(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full for a moment fails no job, and callers read no path of the server."""
    monkeypatch.setattr(batched_jobs, "_AGAIN_S", 0.2)
    one = world()
    job_id = submit(one, 3)
    place = one.services.spool.book(job_id)
    place.touch()
    with one.running():
        reason = "the server's database or disk, which failed just now"
        until(lambda: one.job(job_id)["waiting_for"] == reason)
        place.unlink()
        assert one.ended(job_id)["answered"] == 3


def test_a_job_waits_while_its_provider_refuses_the_key(world: Make, double: BatchDouble) -> None:
    """One start with a wrong key loses nothing that was paid."""
    one = world(SVC_PROVIDER_OWN_KEY="sk-right")
    double.key, double.takes_s = "sk-right", 3_600.0
    job_id = submit(one)
    with one.running():
        until(lambda: double.creations == 1)
    double.takes_s, double.key = 0.0, "sk-other"
    with one.running():
        until(lambda: "does not accept the key" in (one.job(job_id)["waiting_for"] or ""))
    double.key = "sk-right"
    with one.running():
        assert one.ended(job_id)["answered"] == 40
        until(lambda: not books(one))
    assert double.creations == 1 and set(double.carried_out.values()) == {1}


def test_a_job_makes_no_further_batch_while_its_project_has_a_budget(
    world: Make, double: BatchDouble
) -> None:
    one = world()
    questions = {**NOUL, "blue": {**NOUL["late"], "depends_on": ["late"]}}
    double.takes_s = 3_600.0
    job_id = submit(one, questions=questions, project="shop")
    with one.running():
        until(lambda: double.creations == 1)
        budgets = Budgets(one.services.database)
        budgets.set(Budget(Scope.PROJECT, "shop", Per.DAY, NANO))
        time.sleep(1.2 * LOOKED_AT_EVERY_S)
        double.takes_s = 0.0
        until(lambda: "has a budget" in (one.job(job_id)["waiting_for"] or ""))
        assert double.creations == 1
        budgets.remove(Scope.PROJECT, "shop", Per.DAY)
        assert one.ended(job_id)["answered"] == 40
    assert double.creations == 2


@pytest.mark.parametrize("new", ["sk-new", None])
def test_a_projects_key_that_is_changed_or_removed_counts_for_a_job_that_runs(
    world: Make, double: BatchDouble, new: str | None
) -> None:
    aggregator = {
        "SVC_MODEL": "acme/m",
        "SVC_PROVIDER_URL": double.url,
        "OPENROUTER_API_KEY": "sk-server",
        "SVC_PROVIDER_OPENROUTER_BATCH": "1",
        "SVC_PROVIDER_OPENROUTER_PRICE": "2,4",
    }
    one = world(**aggregator)
    keys = ProjectKeys(one.services.database, one.settings.master_key)
    keys.set("shop", "sk-old")
    double.key, double.takes_s = "sk-old", 3_600.0
    job_id = submit(one, project="shop")
    with one.running():
        until(lambda: double.creations == 1)
        double.key, double.takes_s = new or "sk-server", 0.0
        if new is None:
            keys.remove("shop")
        else:
            keys.set("shop", new)
        assert one.ended(job_id)["answered"] == 40
    assert set(double.carried_out.values()) == {1}


def test_what_an_ended_job_left_at_a_provider_is_deleted_once_that_is_configured_again(
    world: Make, double: BatchDouble, caplog: pytest.LogCaptureFixture
) -> None:
    one = world()
    double.takes_s = 3_600.0
    job_id = submit(one)
    with one.running():
        until(lambda: double.creations == 1)
    one.client.post(f"/v1/batch/{job_id}/cancel")
    configured = one.settings
    one.settings = replace(configured, providers={})
    with one.running(idle_s=1.0):
        until(lambda: "own, which is not configured, may still have svc-" in caplog.text)
    assert books(one) and double.files
    one.settings = configured
    with one.running(idle_s=2.0):
        until(lambda: not books(one) and not double.files)
    assert [batch.cancelled for batch in double.batches.values()] == [True]


def test_a_forgotten_row_leaves_the_book_of_a_job_that_goes_on_and_its_provider(
    world: Make, double: BatchDouble
) -> None:
    one = world()
    double.takes_s = 1_000.0
    rows = [{"id": f"r{n}", "state": f"Parcel {n}.", "ref": f"crm-{n}"} for n in range(1, 7)]
    job_id = submit(one, rows=rows, project="shop")
    forgetting = Forgetting(one.services.database, one.services.jobs, one.services.spool, strip)
    with one.running():
        until(lambda: double.creations == 1)
        (book,) = books(one)
        assert list(book.glob("*/*.calls"))
        assert forgetting.forget(Subject("shop", ref="crm-5")).waiting == 1
        until(lambda: double.creations == 2)
        double.takes_s = 0.0
        found = one.ended(job_id)
        until(lambda: not books(one))
    assert (found["answered"], found["failed"]) == (5, 1)
    assert not double.files
    first, second = double.batches.values()
    # The first row was asked directly, and after that there are two calls a row.
    assert first.cancelled and (first.total, second.total) == (10, 8)
    assert [line["id"] for line in one.results(job_id)] == ["r1", "r2", "r3", "r4", "", "r6"]


def test_forgotten_rows_stay_so_after_an_older_database_is_put_back(
    world: Make, double: BatchDouble
) -> None:
    one = world()
    rows = [{"id": f"r{n}", "state": f"Parcel {n}.", "ref": f"crm-{n}"} for n in range(1, 7)]
    job_id = submit(one, rows=rows, project="shop")
    forgetting = Forgetting(one.services.database, one.services.jobs, one.services.spool, strip)
    for ref in ("crm-1", "crm-5"):
        forgetting.forget(Subject("shop", ref=ref))
    one.settled_no_more()
    with one.running():
        found = one.ended(job_id)
    assert (found["answered"], found["failed"]) == (4, 2)
    assert [line["id"] for line in one.results(job_id)] == ["", "r2", "r3", "r4", "", "r6"]


def test_a_forgotten_row_leaves_the_book_also_where_no_job_runs(
    world: Make, double: BatchDouble
) -> None:
    one = world()
    double.takes_s = 1_000.0
    rows = [{"id": f"r{n}", "state": f"Parcel {n}.", "ref": f"crm-{n}"} for n in range(1, 7)]
    submit(one, rows=rows, project="shop")
    with one.running():
        until(lambda: double.creations == 1)
    forgetting = Forgetting(one.services.database, one.services.jobs, one.services.spool, strip)
    forgetting.forget(Subject("shop", ref="crm-2"))
    (book,) = books(one)
    assert {path.suffix for path in book.glob("*/*")} == {".json", ".round"}
    with one.running():
        until(lambda: double.creations == 2)
        until(lambda: not one.services.spool.books_aside())
    assert [batch.cancelled for batch in double.batches.values()] == [True, False]


def test_a_job_that_expires_at_its_provider_is_cancelled_there(
    world: Make, double: BatchDouble
) -> None:
    double.takes_s = 3_600.0
    one = world()
    job_id = submit(one)
    with one.running():
        until(lambda: double.creations == 1)
        with sqlite3.connect(one.settings.db) as connection:
            connection.execute("UPDATE jobs SET expires_at = 1")
        connection.close()
        one.ended(job_id, "expired")
        until(lambda: not books(one) and not double.files)
    assert [batch.cancelled for batch in double.batches.values()] == [True]


def test_a_batch_that_is_cancelled_at_the_provider_fails_the_job_with_its_answers(
    world: Make, double: BatchDouble
) -> None:
    double.takes_s = 3_600.0
    one = world()
    job_id = submit(one)
    with one.running():
        until(lambda: double.creations == 1)
        double.batches["batch_0"].cancelled = True
        found = one.ended(job_id, "failed")
        until(lambda: not books(one) and not double.files)
    assert re.fullmatch(r"batch svc-\S+ was cancelled at provider own", found["reason"])
    assert found["answered"] == 1 and double.creations == 1


def test_a_job_goes_on_where_it_was_stopped_and_pays_nothing_twice(
    world: Make, double: BatchDouble
) -> None:
    double.takes_s = 2.0
    double.expiring = {0: 0.3}
    one = world()
    job_id = submit(one, 300)
    with one.running():
        until(lambda: double.creations == 1)
    with one.running():
        until(lambda: double.creations == 2)
    with one.running():
        one.ended(job_id)
    assert set(double.carried_out.values()) == {1} and len(double.carried_out) == 2 * 299
    assert [line["row"] for line in one.results(job_id)] == list(range(1, 301))


def test_what_waits_in_the_book_can_be_read_with_the_master_key_alone(
    world: Make, double: BatchDouble
) -> None:
    double.takes_s = 3_600.0
    one = world()
    submit(one, 5)
    with one.running():
        until(lambda: double.creations == 1)
    files = [path for path in one.services.spool.folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".calls", ".round", ".json"}
    assert not any(b"Parcel" in path.read_bytes() for path in files)
    one.settings = replace(one.settings, master_key="another")
    with one.running():
        found = one.ended(one.client.get("/v1/batch").get_json()["jobs"][0]["id"], "failed")
        until(lambda: not books(one))
    assert "another master key" in found["reason"]


def test_replies_are_sealed_too(world: Make, double: BatchDouble) -> None:
    one = world()
    plan = ["@own/m"]
    seen: list[bytes] = []

    def answers(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
        for path in one.services.spool.folder.rglob("*.replies*"):
            seen.append(path.read_bytes())
        return Reply(completion('{"q1": "the secret answer"}'))

    questions = {"name": {"type": "text", "instructions": "Which name?"}}
    double.handler = answers
    double.expiring = {0: 0.5}
    job_id = submit(one, 20, questions=questions, model=plan)
    with one.running():
        one.ended(job_id)
    assert seen and not any(b"secret answer" in data for data in seen)


@pytest.mark.parametrize(
    ("settings", "fields", "told"),
    [
        ({"SVC_PROVIDER_OWN_BATCH": "0"}, {}, "SVC_PROVIDER_OWN_BATCH=1"),
        ({}, {"privacy": "strict"}, "privacy: strict cannot be used with a batch"),
        ({}, {"batch": "mine"}, "unknown batch"),
        ({}, {"budget_usd": 1}, "budget_usd: cannot be used with a batch"),
        ({}, {"model": "@other/m"}, "provider 'other' is not configured"),
        (
            {
                "OPENROUTER_API_KEY": "k",
                "SVC_DAILY_LIMIT": "9",
                "SVC_PROVIDER_OPENROUTER_BATCH": "1",
            },
            {"model": "a/b"},
            "SVC_DAILY_LIMIT counts calls",
        ),
    ],
)
def test_what_cannot_be_asked_in_batches_is_refused(
    world: Make, settings: dict[str, str], fields: Json, told: str
) -> None:
    one = world(**settings)
    rows = [{"id": "a", "state": "Parcel 1."}]
    body = {"questions": NOUL, "rows": rows, "batch": "provider", **fields}
    answer = one.client.post("/v1/batch", json=body)
    assert answer.status_code == 422 and told in answer.text
    assert one.spooled() == []


def test_a_project_with_a_budget_hands_in_no_batch_whose_calls_it_would_not_count(
    world: Make,
) -> None:
    one = world()
    budgets = Budgets(one.client.application.extensions["svc"].database)
    budgets.set(Budget(Scope.PROJECT, "shop", Per.DAY, limit=NANO, hard=False))
    body = {"questions": NOUL, "rows": [{"id": "a", "state": "x"}], "batch": "provider"}
    answer = one.client.post("/v1/batch", json={**body, "project": "shop"})
    assert answer.status_code == 422 and "has a budget in dollars" in answer.text
    assert one.client.post("/v1/batch", json=body).status_code == 202


def test_without_the_master_key_there_is_no_job(world: Make) -> None:
    one = world(SVC_MASTER_KEY="")
    body = {"questions": NOUL, "rows": [{"id": "a", "state": "x"}], "batch": "provider"}
    answer = one.client.post("/v1/batch", json=body)
    assert answer.status_code == 422 and "SVC_MASTER_KEY" in answer.text


def test_a_job_keeps_the_model_that_it_was_handed_in_with(world: Make, double: BatchDouble) -> None:
    one = world()
    job_id = submit(one, 3)
    one.settings = replace(one.settings, model="@own/other")
    with one.running():
        one.ended(job_id)
    assert {line["decision"]["model"] for line in one.results(job_id)} == {"@own/m"}


def test_blocks_are_as_small_as_their_calls_are_large() -> None:
    assert rows_of_block(2) == 10_000
    assert rows_of_block(10) == 5_000
    assert rows_that_fit(10_000, 10, lambda rows: 1_000_000 * len(rows), most=10**9) == 100
    assert rows_that_fit(10_000, 10, lambda rows: 10**12 * len(rows), most=10**9) == 1
    assert rows_that_fit(10_000, 10, lambda _: 0, most=10**9) == 5_000


@pytest.mark.parametrize(("heavy", "rows"), [([0], 25), ([0, 12], 12), ([99], 25), (range(100), 1)])
def test_blocks_are_smaller_where_one_has_most_of_the_bytes(
    heavy: Iterable[int], rows: int
) -> None:
    sizes = [1_000 if number in heavy else 1 for number in range(100)]

    def bytes_of(rows: range) -> int:
        return sum(sizes[rows.start - 1 : rows.stop - 1])

    assert rows_that_fit(100, 2_000, bytes_of, most=1_030) == rows


def bytes_of_calls(one: World, double: BatchDouble) -> list[int]:
    """How much of the disk calls take whenever the provider makes a reply, from now on."""
    held: list[int] = []

    def answers(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
        calls = [file.stat().st_size for file in one.services.spool.folder.rglob("*.calls")]
        held.append(sum(calls))
        return said(body, n, headers)

    double.handler = answers
    return held


@pytest.mark.parametrize("letter", ["x", "語", "\N{PARTY POPPER}", '"'])
def test_the_calls_of_a_row_are_counted_by_what_they_take_on_the_disk(
    world: Make, double: BatchDouble, letter: str
) -> None:
    one = world(SVC_CACHE_SIZE="0")
    held = bytes_of_calls(one, double)
    questions = {"late": {"type": "noul", "instructions": "Late? " + letter * 3_000}}
    job_id = submit(one, 3, questions=questions)
    with one.running():
        one.ended(job_id)
    shared = {"questions": questions, "debias": True}
    bodies = one.services.core.engine.bodies(load_template(shared))
    # The row that was asked first, to learn how the model can be asked, is not among them.
    assert max(held) == pytest.approx(bodies.on_disk(2, 0), rel=0.15)


def test_the_calls_of_a_row_are_more_where_its_model_is_asked_for_each_label_by_itself(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one answers the first of many questions alone, which is learned from the first row."""
    monkeypatch.setattr(book, "BLOCK_CALLS", 40)
    one, blocks = world(SVC_CACHE_SIZE="0"), set[str]()

    def answers(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
        blocks.update(path.name for path in one.services.spool.folder.glob("book_*/0*"))
        return said(body, n, headers)

    double.handler = answers
    questions = {f"q{number}": NOUL["late"] for number in range(20)}
    job_id = submit(one, 5, questions=questions, debias=False)
    with one.running():
        one.ended(job_id)
    # A row makes 20 calls, and a block has two rows.
    assert blocks == {"000000", "000001", "000002"}


@pytest.mark.parametrize("letter", ["x", "語", "\N{PARTY POPPER}", '"', "\\"])
def test_the_states_of_rows_are_counted_by_about_what_they_take_on_the_disk(
    world: Make, double: BatchDouble, letter: str
) -> None:
    one = world(SVC_CACHE_SIZE="0")
    held = bytes_of_calls(one, double)
    rows = [{"id": str(number), "state": {"text": letter * 50_000}} for number in range(3)]
    job_id = submit(one, rows=rows)
    with closing(one.services.spool.opened(job_id)) as file:
        sizes = file.sizes()
    with one.running():
        one.ended(job_id)
    bodies = one.services.core.engine.bodies(load_template({"questions": NOUL, "debias": True}))
    # The row that was asked first, to learn how the model can be asked, is not among them.
    assert max(held) <= bodies.on_disk(2, sum(sizes[1:])) <= 4 * max(held)


@pytest.mark.parametrize(
    ("letters", "room", "at_once"), [((1, 1, 90_000), 0.5, 2), ((90_000, 1, 1), 0.8, 1)]
)
def test_each_block_takes_the_room_that_its_own_rows_need(
    world: Make,
    double: BatchDouble,
    monkeypatch: pytest.MonkeyPatch,
    letters: tuple[int, ...],
    room: float,
    at_once: int,
) -> None:
    """`room` is a part of what all blocks need together."""
    monkeypatch.setattr(book, "BLOCK_ROWS", 1)
    one = world(SVC_CACHE_SIZE="0")
    double.takes_s = 3_600.0
    bodies = one.services.core.engine.bodies(load_template({"questions": NOUL, "debias": True}))
    monkeypatch.setattr(
        limits, "WAITING_CALLS_BYTES", int(room * bodies.on_disk(3, 60 + sum(letters)))
    )
    # The first row is asked directly, to learn how the model can be asked.
    rows = [{"id": str(n), "state": "x" * count} for n, count in enumerate((1, *letters))]
    job_id = submit(one, rows=rows)
    with one.running():
        until(lambda: double.creations == at_once)
        time.sleep(1.0)
        assert double.creations == at_once
        double.takes_s = 0.0
        one.ended(job_id)
    assert len(one.results(job_id)) == 4


def test_of_rows_that_are_answered_nothing_is_kept_while_others_wait(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider's replies may take far more room than the calls."""
    monkeypatch.setattr(book, "BLOCK_ROWS", 3)
    one, kept = world(SVC_CACHE_SIZE="0"), list[list[str]]()

    def answers(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
        kept.append([path.name for path in sorted(one.services.spool.folder.glob("book_*/0*"))])
        return said(body, n, headers)

    double.handler, double.takes_s = answers, 0.3
    double.expiring = {0: 0.8, 4: 0.8, 5: 0.8}
    job_id = submit(one, 12)
    with one.running():
        one.ended(job_id)
    assert len(one.results(job_id)) == 12
    # The first block has further rounds, in the last of which the others are answered.
    assert max(map(len, kept)) > 1 and kept[-1] == ["000000"]


def test_after_a_restart_rows_that_are_answered_take_no_room_from_others(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "BLOCK_ROWS", 3)
    one = world(SVC_CACHE_SIZE="0")
    # All batches but the first take long.
    double.takes_s, double.expiring = 3_600.0, {}
    job_id = submit(one, 12)
    with closing(one.services.spool.opened(job_id)) as file:
        sizes = file.sizes()
    with one.running():
        until(lambda: double.creations == 4)
        first = next(iter(double.batches.values()))
        first.created -= 7_200.0
        until(lambda: one.job(job_id)["answered"] == 3)
        until(lambda: len(list(one.services.spool.folder.glob("book_*/0*"))) == 3)
    # As much as the three blocks take that are under way.
    bodies = one.services.core.engine.bodies(load_template({"questions": NOUL, "debias": True}))
    monkeypatch.setattr(limits, "WAITING_CALLS_BYTES", bodies.on_disk(9, sum(sizes[3:])))
    double.takes_s = 0.0
    with one.running():
        one.ended(job_id)
    assert len(one.results(job_id)) == 12


def test_rows_are_read_once_it_is_their_jobs_turn(world: Make, tmp_path: Path) -> None:
    """A hundred jobs may wait, whose rows no memory would hold."""
    one, happened = world(), list[str]()
    services, job = one.services, one.services.jobs.get(submit(one, 3))

    @contextmanager
    def in_turn() -> Iterator[None]:
        happened.append("turn")
        yield

    def opened() -> SpoolFile:
        happened.append("opened")
        return services.spool.opened(job.id)

    kept = book.Book(tmp_path / "book", {}, b"job")
    kept.know({}, block_rows=3)
    rows = SimpleNamespace(answer=lambda number, _: happened.append(str(number)), stored=list)
    rounds = JobRounds(
        job,
        kept,
        rows,  # type: ignore[arg-type]
        opened,
        lambda: services.jobs.settled(job),
        lambda: None,
        in_turn,
        services.spool.room,
        len,
        0.1,
        lambda: None,
    )
    rounds.step()
    assert happened == ["turn", "opened", "1", "2", "3"]


def test_calls_that_could_not_be_written_to_the_end_take_no_room(
    world: Make, tmp_path: Path
) -> None:
    services = world().services
    plan = services.batches.plan(load_template({"questions": NOUL}))
    apis = BatchApis(services).of(plan.providers.values(), "default")
    block = book.Book(tmp_path / "book", apis, b"job").block(0)
    with pytest.raises(OSError, match="full"), block.replay() as replay:
        replay.begin(1)
        with suppress(Pending):
            block.book.reply(Model("@own/m", "own", "m"), b'{"model": "m"}')
        assert list(block.folder.iterdir())
        raise OSError("the disk is full")
    assert list(block.folder.iterdir()) == []


def test_jobs_of_one_key_leave_those_of_others_a_turn_to_decide_about_rows(world: Make) -> None:
    """Rows may take minutes to decide about, as those of a block with many rules do."""
    one = world()
    services, given = one.services, one.services.jobs.get(submit(one, 3))

    def job_of(key_id: str) -> BatchedJob:
        return BatchedJob(services, replace(given, api_key=key_id), None, None, None)  # type: ignore[arg-type]

    third = job_of("slow")
    with job_of("slow").in_turn(), job_of("slow").in_turn():
        with job_of("other").in_turn(), job_of("another").in_turn():
            pass
        third.end()
        with pytest.raises(JobEnded), third.in_turn():
            pass
        assert third.waiting_for == ITS_TURN
    with job_of("slow").in_turn():
        pass


def test_jobs_without_room_for_their_calls_wait_for_those_of_others(
    world: Make, double: BatchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The calls of one job are more than all that may wait, so that jobs go one after the other.
    monkeypatch.setattr(limits, "WAITING_CALLS_BYTES", 1)
    one = world(SVC_CACHE_SIZE="0")
    first, second = submit(one, 3), submit(one, 3)
    with one.running():
        one.ended(first)
        one.ended(second)
    assert [len(one.results(job)) for job in (first, second)] == [3, 3]
