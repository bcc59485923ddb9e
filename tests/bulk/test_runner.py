"""Jobs that run, on a scripted provider over real sockets."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from svc import limits
from svc.bulk.answering import SHARE_OF_RATE
from svc.bulk.runner import SPARE_THREADS
from svc.providers import asked_by
from svc.schemas import load_template
from svc.store import ApiKeys, ProjectSizes
from svc.store.keys import NewKey
from tests.bulk.conftest import WAIT_S, World, until
from tests.scripted import Behaviour, Handler, Json, Reply, error
from tests.web.models import ANIMAL, PREFERS_CATS, reply_to

Make = Callable[..., World]


def prompt(body: Json) -> str:
    return str(body["messages"])


class Gate:
    """A provider that answers once the test lets it, and `fails` where that says so."""

    def __init__(self, fails: Callable[[str], bool] = lambda _: False) -> None:
        self.go = threading.Event()
        self.fails = fails

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        assert self.go.wait(WAIT_S)
        if self.fails(prompt(body)):
            return Reply(error("it broke"), 400)
        return Reply(reply_to(PREFERS_CATS, body))


def opened(fails: Callable[[str], bool] = lambda _: False) -> Gate:
    gate = Gate(fails)
    gate.go.set()
    return gate


def has_answered(one: World, job_id: str, count: int) -> bool:
    return bool(one.job(job_id)["answered"] >= count)


def test_every_row_is_a_decision_as_a_request_would_be(world: Make) -> None:
    one = world()
    rows = [
        {"id": "a", "state": "The cat sat.", "ref": "crm-1", "tags": {"from": "mail"}},
        {"id": "b", "state": {"text": "A cat.", "n": 1.10}},
        {"id": "c", "state": None},
    ]
    job_id = one.submit(rows=rows, project="shop")
    with one.running():
        job = one.ended(job_id)
    assert (job["answered"], job["failed"], job["ends_at"]) == (3, 0, None)
    results = one.results(job_id)
    assert [(line["row"], line["id"]) for line in results] == [(1, "a"), (2, "b"), (3, "c")]
    for row, line in zip(rows, results, strict=True):
        body = {"questions": {"animal": ANIMAL}, "debias": False, "project": "shop"}
        given = {name: value for name, value in row.items() if name != "id"}
        live = one.client.post("/v1/decide", json={**body, **given}).get_json()
        passing = ("id", "latency_ms", "cached", "cost_usd")
        assert {**live, **dict.fromkeys(passing)} == {**line["decision"], **dict.fromkeys(passing)}
        assert list(live) == list(line["decision"])
    page = one.client.get("/v1/audit?project=shop&ref=crm-1").get_json()
    assert results[0]["decision"]["id"] in {entry["id"] for entry in page["entries"]}
    assert one.spooled() == []
    label = {"decision_id": results[1]["decision"]["id"], "question": "animal", "label": "cat"}
    assert one.client.post("/v1/feedback", json=label).status_code == 200


def test_a_row_that_no_model_answers_is_an_error_line_among_answers(world: Make) -> None:
    one = world(opened(lambda text: "Cat 2." in text))
    job_id = one.submit(4)
    with one.running():
        job = one.ended(job_id)
    assert (job["answered"], job["failed"]) == (3, 1)
    lines = one.results(job_id)
    assert [("error" in line) for line in lines] == [False, True, False, False]
    assert lines[1]["error"]["type"] == "model_error" and "Cat" not in lines[1]["error"]["message"]


def test_rows_for_a_model_that_its_provider_does_not_know_have_their_error_at_once(
    world: Make,
) -> None:
    one = world(lambda body, n, headers: Reply(error("no such model", code="model_not_found"), 404))
    job_id = one.submit(30)
    with one.running():
        job = one.ended(job_id)
    assert (job["answered"], job["failed"]) == (0, 30)
    assert {line["error"]["type"] for line in one.results(job_id)} == {"model_unavailable"}


def test_while_the_models_fail_a_job_waits_and_then_goes_on(world: Make) -> None:
    failing = [True]
    one = world(opened(lambda _: failing[0]))
    job_id = one.submit(40)
    with one.running():
        until(lambda: one.job(job_id)["waiting_for"] == "the models fail")
        prompts = " ".join(map(prompt, one.provider.bodies))
        asked = set(re.findall(r"Cat \d+", prompts))
        failing[0] = False
        job = one.ended(job_id)
    assert (job["answered"], job["failed"]) == (40, 0)
    assert len(asked) < 40


def test_while_the_models_fail_rows_that_need_none_cost_the_others_no_try(world: Make) -> None:
    failing = [True]
    one = world(opened(lambda _: failing[0]))
    ruled = {**ANIMAL, "rules": [{"if": {"kind": "known"}, "answer": "cat"}]}
    rows = [
        {"id": f"r{n}", "state": {"text": f"Cat {n}.", "kind": "known" if n % 2 else "other"}}
        for n in range(80)
    ]
    job_id = one.submit(rows=rows, questions={"animal": ruled})
    with one.running():
        until(lambda: one.job(job_id)["waiting_for"] == "the models fail")
        assert one.job(job_id)["answered"] > 0
        # Longer than the tries of a row take.
        time.sleep(1.0)
        assert one.job(job_id)["failed"] == 0
        failing[0] = False
        job = one.ended(job_id)
    assert (job["answered"], job["failed"]) == (80, 0)


def test_a_small_job_is_not_stuck_behind_a_large_one(world: Make) -> None:
    gate = Gate()
    one = world(gate)
    large, small = one.submit(2_000), one.submit(20, about="Kitten")
    with one.running():
        until(lambda: len(one.provider.bodies) >= 16)
        gate.go.set()
        one.ended(small)
        assert one.job(large)["answered"] < 500
        one.client.post(f"/v1/batch/{large}/cancel")


def dogs_wait(gate: Gate) -> Handler:
    """Rows about dogs wait at the gate, and the others are answered at once."""

    def answers(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        if "Dog" in prompt(body):
            return gate(body, n, headers)
        return Reply(reply_to(PREFERS_CATS, body))

    return answers


def test_a_job_whose_rows_take_long_leaves_threads_to_others(world: Make) -> None:
    gate = Gate()
    one = world(dogs_wait(gate))
    slow, fast = one.submit(40, about="Dog"), one.submit(20)
    with one.running():
        one.ended(fast)
        assert one.job(slow)["answered"] == 0
        gate.go.set()
        one.ended(slow)


def test_many_jobs_of_a_key_whose_rows_take_long_leave_threads_to_other_keys(world: Make) -> None:
    gate = Gate()
    one = world(dogs_wait(gate))
    keys = ApiKeys(one.services.database)
    many, few = keys.create("many", 600), keys.create("few", 600)
    assert many is not None and few is not None
    slow = [
        one.submit(5, about=f"Dog {number}", headers=bearer(many))
        for number in range(limits.JOBS_OPEN)
    ]
    with one.running():
        until(lambda: len(one.provider.bodies) == limits.JOB_THREADS - SPARE_THREADS)
        fast = one.submit(20, headers=bearer(few))

        def status() -> Any:
            return one.client.get(f"/v1/batch/{fast}", headers=bearer(few)).get_json()["status"]

        until(lambda: status() == "done")
        for job_id in slow:
            one.client.post(f"/v1/batch/{job_id}/cancel", headers=bearer(many))
        gate.go.set()


def bearer(key: NewKey) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key.text}"}


def test_a_job_whose_inputs_cannot_be_opened_keeps_no_other_waiting(world: Make) -> None:
    one = world()
    bad, good = one.submit(3), one.submit(3)
    file = one.services.spool.folder / bad
    file.unlink()
    file.mkdir()
    with one.running():
        one.ended(good)
        assert one.job(bad)["status"] == "waiting"


def test_a_job_whose_end_is_not_stored_ends_with_a_later_look(world: Make) -> None:
    one = world()
    job_id = one.submit(3)
    (one.services.spool.folder / job_id).unlink()
    with closing(sqlite3.connect(one.settings.db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with one.running():
            time.sleep(2.0)
            other.execute("COMMIT")
            one.ended(job_id, "failed")


def test_rows_under_way_are_finished_when_a_job_is_cancelled_and_no_other_is_asked(
    world: Make,
) -> None:
    gate = Gate()
    one = world(gate)
    job_id = one.submit(1_000)
    assert "svc_job_rows_left 1000.0" in one.client.get("/metrics").text
    with one.running():
        until(lambda: len(one.provider.bodies) == 16)
        assert one.client.post(f"/v1/batch/{job_id}/cancel").get_json()["status"] == "cancelled"
        assert one.spooled() == []
        gate.go.set()
        until(lambda: one.job(job_id)["answered"] == 16)
    assert (len(one.provider.bodies), len(one.results(job_id))) == (16, 16)
    assert one.job(job_id)["status"] == "cancelled"


def test_a_job_goes_on_where_it_was_stopped(world: Make) -> None:
    one = world(opened())
    job_id = one.submit(400)
    for answered in (60, 150, 250, 400):
        with one.running():
            until(partial(has_answered, one, job_id, answered))
    # Rows that were under way were finished, so that none was paid twice.
    assert len(one.provider.bodies) == 400
    assert [line["row"] for line in one.results(job_id)] == list(range(1, 401))


def test_an_expired_job_asks_nothing_and_its_inputs_are_gone(world: Make) -> None:
    one = world()
    job_id = one.submit(3)
    with sqlite3.connect(one.settings.db) as connection:
        connection.execute("UPDATE jobs SET expires_at = 1")
    connection.close()
    with one.running():
        one.ended(job_id, "expired")
        until(lambda: one.spooled() == [])
    assert one.provider.bodies == []


def test_rows_under_way_when_a_job_expires_are_stored(world: Make) -> None:
    gate = Gate()
    one = world(gate)
    job_id = one.submit(100)
    with one.running():
        until(lambda: len(one.provider.bodies) == 16)
        with sqlite3.connect(one.settings.db) as connection:
            connection.execute("UPDATE jobs SET expires_at = 1")
        connection.close()
        one.ended(job_id, "expired")
        gate.go.set()
        until(lambda: one.job(job_id)["answered"] == 16)
    assert one.job(job_id)["status"] == "expired"


def test_a_job_whose_key_is_revoked_fails_and_keeps_its_answers(world: Make) -> None:
    gate = Gate()
    one = world(gate)
    keys = ApiKeys(one.services.database)
    own, other = keys.create("own", 600), keys.create("other", 600)
    assert own is not None and other is not None
    job_id = one.submit(1_000, headers={"Authorization": f"Bearer {own.text}"})
    seen = {"Authorization": f"Bearer {other.text}"}

    def job() -> Any:
        return one.client.get(f"/v1/batch/{job_id}", headers=seen).get_json()

    with one.running():
        until(lambda: len(one.provider.bodies) == 16)
        keys.revoke(own.id)
        until(lambda: job()["status"] == "failed")
        gate.go.set()
        until(lambda: job()["answered"] == 16)
    assert job()["reason"] == "the API key that handed it in was revoked"
    assert one.spooled() == [] and len(one.provider.bodies) == 16


def test_a_row_that_can_be_neither_asked_nor_given_up_is_no_work_without_end(
    world: Make, caplog: pytest.LogCaptureFixture
) -> None:
    one = world()
    job_id = one.submit(3)
    one.services.spool.replace(job_id, lambda number, text: text if number != 2 else '{"id_":"r2"}')
    with one.running():
        until(lambda: caplog.text.count("unforeseen") >= 4)
        time.sleep(0.3)
        assert caplog.text.count("unforeseen") == 4
        assert one.job(job_id)["answered"] == 2


def test_a_job_of_a_full_project_fails_with_the_reason(world: Make) -> None:
    one = world()
    ProjectSizes(one.services.database).set("default", 5_000)
    job_id = one.submit(100)
    with one.running():
        job = one.ended(job_id, "failed")
    assert "stored as many bytes as it may" in job["reason"]
    assert 0 < job["answered"] < 100 and len(one.results(job_id)) == job["answered"]


def test_a_job_waits_while_its_provider_is_not_configured(world: Make) -> None:
    one = world()
    job_id = one.submit(5)
    configured = one.settings
    one.settings = replace(configured, providers={})
    with one.running():
        until(lambda: "is not configured" in (one.job(job_id)["waiting_for"] or ""))
        # Longer than a row is tried again that no model answers.
        time.sleep(1.0)
    one.settings = configured
    with one.running():
        assert one.ended(job_id)["answered"] == 5


def test_errors_of_rows_fill_a_project_too(world: Make) -> None:
    one = world(lambda body, n, headers: Reply(error("no such model", code="model_not_found"), 404))
    job_id = one.submit(100)
    ProjectSizes(one.services.database).set("default", 5_000)
    with one.running():
        job = one.ended(job_id, "failed")
    assert "stored as many bytes as it may" in job["reason"]
    assert 0 < job["failed"] < 40 and len(one.results(job_id)) == job["failed"]


def test_a_file_that_is_damaged_is_read_no_further_while_its_jobs_end_is_not_stored(
    world: Make,
) -> None:
    one = world()
    rows = [{"id": str(n), "state": "Dog " * 30_000} for n in range(6)]
    job_id, other = one.submit(rows=rows), one.submit(1)
    path = one.services.spool.folder / job_id
    data = path.read_bytes()
    # The first of several blocks.
    path.write_bytes(data[:9_000] + bytes([data[9_000] ^ 1]) + data[9_001:])
    with sqlite3.connect(one.settings.db) as connection:
        connection.execute(
            "CREATE TRIGGER broken BEFORE UPDATE ON jobs WHEN NEW.status = 'failed' "
            "BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    with one.running():
        one.ended(other)
        time.sleep(1.5)
        assert one.job(job_id)["status"] in ("waiting", "running")
        with sqlite3.connect(one.settings.db) as connection:
            connection.execute("DROP TRIGGER broken")
        connection.close()
        assert "damaged" in one.ended(job_id, "failed")["reason"]
    assert len(one.provider.bodies) == 1 and "Cat 1." in prompt(one.provider.bodies[0])


def test_jobs_that_ended_long_ago_are_deleted_and_their_decisions_stay(world: Make) -> None:
    one = world()
    old, young = one.submit(3), one.submit(2)
    with one.running():
        one.ended(old)
        one.ended(young)
    with sqlite3.connect(one.settings.db) as connection:
        month_ms = limits.JOB_KEPT_DAYS * 86_400_000
        connection.execute("UPDATE jobs SET ended_at = ended_at - ? WHERE id = ?", (month_ms, old))
    for place in (old, f"{old}/results"):
        assert one.client.get(f"/v1/batch/{place}").status_code == 404
    assert [job["id"] for job in one.client.get("/v1/batch").get_json()["jobs"]] == [young]
    count = "SELECT count(*) FROM job_rows"
    with one.running():
        until(lambda: connection.execute(count).fetchone() == (2,))
    assert connection.execute("SELECT count(*) FROM decisions").fetchone() == (5,)
    connection.close()
    assert len(one.results(young)) == 2


def test_a_job_whose_inputs_are_gone_fails_and_says_so(world: Make) -> None:
    one = world()
    gone, damaged = one.submit(3), one.submit(3)
    one.services.spool.delete(gone)
    path = one.services.spool.folder / damaged
    path.write_bytes(path.read_bytes()[:-20])
    with one.running():
        assert "gone" in one.ended(gone, "failed")["reason"]
        assert "damaged" in one.ended(damaged, "failed")["reason"]


def test_inputs_that_were_sealed_with_another_key_fail_the_job(world: Make) -> None:
    one = world()
    job_id = one.submit(3)
    one.settings = replace(one.settings, master_key="another")
    with one.running():
        assert "another master key" in one.ended(job_id, "failed")["reason"]


def test_without_the_master_key_a_job_waits_for_it(world: Make) -> None:
    one = world()
    job_id = one.submit(3)
    with_key, one.settings = one.settings, replace(one.settings, master_key=None)
    with one.running():
        until(lambda: "SVC_MASTER_KEY" in (one.job(job_id)["waiting_for"] or ""))
    one.settings = with_key
    with one.running():
        assert one.ended(job_id)["answered"] == 3


def test_inputs_without_a_job_are_deleted_at_the_start(world: Make) -> None:
    one = world()
    with one.services.spool.writing("job_orphan", "{}", ["{}"]):
        pass
    with one.running():
        until(lambda: one.spooled() == [])


def test_one_of_two_runs_the_jobs_and_the_other_takes_over(world: Make) -> None:
    one = world(opened())
    job_id = one.submit(600)
    with one.running():
        until(lambda: one.job(job_id)["answered"] > 0)
        with one.running():
            until(lambda: one.job(job_id)["answered"] > 100)
    if one.job(job_id)["status"] != "done":
        with one.running():
            one.ended(job_id)
    assert len(one.provider.bodies) == 600
    assert [line["row"] for line in one.results(job_id)] == list(range(1, 601))


def test_a_database_that_is_away_for_a_while_costs_no_answer(world: Make) -> None:
    gate = Gate()
    one = world(gate)
    job_id = one.submit(200)
    away = f"{one.settings.db}.away"
    with one.running():
        until(lambda: len(one.provider.bodies) == 16)
        os.rename(one.settings.db, away)
        gate.go.set()
        threading.Event().wait(2.5)
        os.rename(away, one.settings.db)
        one.ended(job_id)
    assert len(one.provider.bodies) == 200


def test_a_runner_without_jobs_ends(world: Make) -> None:
    one = world()
    job_id = one.submit(3)
    ended = threading.Event()

    def run() -> None:
        with one.running(idle_s=0.2):
            one.ended(job_id)
            ended.set()

    run()
    assert ended.is_set()


@pytest.mark.parametrize(
    ("fields", "rpm", "rows"),
    [
        ({}, "60", 15),
        ({"debias": False}, "60", 18),
        ({"model": {"council": [f"@scripted/{name}" for name in "abcde"]}}, "60", 3),
        ({"model": {"council": [f"@scripted/{name}" for name in "abcde"]}}, "10", 1),
        ({"model": "@unknown/m"}, "60", 18),
    ],
    ids=str,
)
def test_so_many_rows_are_asked_at_a_time_as_the_rate_allows(
    world: Make, fields: Json, rpm: str, rows: int
) -> None:
    """Whose turn does not come in time is left out of an answer, as an order or a member is."""
    one = world(SVC_PROVIDER_SCRIPTED_RPM=rpm)
    template = load_template({"questions": {"q": ANIMAL}, **fields})
    assert one.services.core.engine.at_once(template, 18, SHARE_OF_RATE) == rows


def test_a_model_that_is_asked_for_one_label_a_call_has_fewer_rows_at_a_time(world: Make) -> None:
    one = world(SVC_PROVIDER_SCRIPTED_RPM="60")
    multi = {"type": "multi", "instructions": "Which?", "options": dict.fromkeys("abcde", "")}
    template = load_template({"questions": {"q": multi}})
    engine, traits = one.services.core.engine, one.services.core.client.traits
    assert engine.at_once(template, 18, SHARE_OF_RATE) == 15
    # Its replies with all labels could not be read.
    model = asked_by("default", "@scripted/m")
    traits.change(model, lambda known: replace(known, labels=replace(known.labels, index=1)))
    assert engine.at_once(template, 18, SHARE_OF_RATE) == 3


def test_jobs_take_at_most_half_of_a_providers_rate(world: Make) -> None:
    one = world(SVC_PROVIDER_SCRIPTED_RPM="600")
    job_id = one.submit(400)
    with one.running():
        until(lambda: one.job(job_id)["answered"] >= 50)
        threading.Event().wait(1.0)
        # A burst of 10 s of half the rate, and a little more; a live request still gets its slot.
        assert len(one.provider.bodies) < 80
        live = one.client.post("/v1/decide", json={"state": "x", "questions": {"a": ANIMAL}})
        assert live.status_code == 200 and live.get_json()["latency_ms"] < 1_000
        one.client.post(f"/v1/batch/{job_id}/cancel")


def test_the_thread_that_all_calls_need_is_there_before_any_row(world: Make) -> None:
    """Where the system allows few, rows would take its place, and all of their calls would fail."""
    one = world()
    job_id = one.submit()
    with closing(sqlite3.connect(one.settings.db)) as connection, connection:
        connection.execute("UPDATE jobs SET expires_at = 1")
    before = threads("calls")
    with one.running():
        one.ended(job_id, "expired")
        assert threads("calls") > before
    assert not one.provider.requests


def threads(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())
