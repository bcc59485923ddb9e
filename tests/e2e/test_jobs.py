"""Jobs on a really started server, whose processes are killed at any instant."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from svc.demo import DemoServer
from tests.e2e.serving import GunicornServer, Server
from tests.store.holding import until
from tests.web.models import ANIMAL

ROWS = 2_000
KEY = {"SVC_MASTER_KEY": "for jobs"}
END_S = 60.0


def submitted(server: Server, rows: int = ROWS, **fields: Any) -> str:
    given = [{"id": f"r{n}", "state": f"Cat {n}."} for n in range(1, rows + 1)]
    body = {"questions": {"animal": ANIMAL}, "rows": given, "debias": False, **fields}
    answer = server.post(body, "/v1/batch")
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def job(server: Server, job_id: str) -> Any:
    return server.get(f"/v1/batch/{job_id}").json()


def results(server: Server, job_id: str) -> list[Any]:
    lines, after = [], "0"
    while after:
        page = server.get(f"/v1/batch/{job_id}/results?after={after}")
        lines += map(json.loads, page.text.splitlines())
        after = page.headers.get("x-next-after", "")
    return lines


def done(server: Server, job_id: str, end_s: float = END_S) -> Any:
    give_up_at = time.monotonic() + end_s
    while (found := job(server, job_id))["status"] != "done":
        assert time.monotonic() < give_up_at, f"{found}\n{server.log}"
        time.sleep(0.05)
    return found


def settings(demo: DemoServer) -> dict[str, str]:
    return {"SVC_PROVIDER_OWN_URL": demo.url, "SVC_MODEL": "@own/lexical", **KEY}


def assert_each_row_once(db: Path, lines: list[Any], rows: int) -> None:
    numbers = range(1, rows + 1)
    assert [(line["row"], line["id"]) for line in lines] == [(n, f"r{n}") for n in numbers]
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        (decisions,) = connection.execute("SELECT count(*) FROM decisions").fetchone()
        settled = Counter(row for (row,) in connection.execute("SELECT row FROM job_rows"))
        linked = connection.execute("SELECT count(DISTINCT decision_seq) FROM job_rows").fetchone()
    assert (decisions, linked[0]) == (rows, rows)
    assert settled == dict.fromkeys(numbers, 1)
    assert list(Path(f"{db}.spool").glob("job_*")) == []


def kill_runner(server: Server) -> bool:
    return _killed(server.runner)


def kill_keeper(server: Server) -> bool:
    return _killed(server.keeper)


def _killed(pid: int | None) -> bool:
    if pid is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kill", [kill_runner, kill_keeper])
def test_whichever_process_of_jobs_is_killed_each_row_is_answered_once(
    db: Path, demo: DemoServer, kill: Callable[[Server], bool]
) -> None:
    with Server(db, "--workers", "2", **settings(demo)) as server:
        job_id = submitted(server)
        killed = 0
        while job(server, job_id)["status"] != "done":
            time.sleep(random.uniform(0.1, 1.5))
            killed += kill(server)
            if killed == 4:
                break
        found = done(server, job_id)
        assert (found["answered"], found["failed"]) == (ROWS, 0)
        lines = results(server, job_id)
        assert server.get("/health").status_code == 200
        assert server.stop() == 0
    assert killed > 0
    assert_each_row_once(db, lines, ROWS)


@pytest.mark.slow
def test_the_keeper_and_a_worker_that_are_killed_at_once_are_replaced(
    db: Path, demo: DemoServer
) -> None:
    """As where the memory of the machine is used up: the master forks for both of them."""
    with Server(db, **settings(demo)) as server:
        job_id = submitted(server)
        killed: set[int | None] = set()

        def are_there() -> bool:
            """Both, and neither is one that was killed."""
            there = {*server.workers, server.keeper}
            return len(there) == 2 and not there & {None, *killed}

        for _ in range(8):
            until(are_there)
            (worker,), keeper = server.workers, server.keeper
            os.kill(worker, signal.SIGKILL)
            assert _killed(keeper)
            killed |= {worker, keeper}
        assert done(server, job_id)["answered"] == ROWS
        lines = results(server, job_id)
        assert server.stop() == 0
    assert_each_row_once(db, lines, ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["runner", "keeper"])
def test_a_process_of_jobs_that_is_stopped_is_replaced(
    db: Path, demo: DemoServer, which: str
) -> None:
    with Server(db, **settings(demo)) as server:
        job_id = submitted(server)
        until(lambda: job(server, job_id)["answered"] > 50)
        stopped = getattr(server, which)
        os.kill(stopped, signal.SIGSTOP)
        assert done(server, job_id)["answered"] == ROWS
        assert getattr(server, which) != stopped
        lines = results(server, job_id)
        assert server.stop() == 0
        assert ("no sign of life" in server.log) == (which == "runner")
    assert_each_row_once(db, lines, ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("master_alone", [False, True])
def test_a_job_survives_servers_that_are_killed_at_random_instants(
    db: Path, demo: DemoServer, master_alone: bool
) -> None:
    with Server(db, **settings(demo)) as server:
        job_id = submitted(server)
        time.sleep(random.uniform(0.0, 1.0))
        server.kill_master(10.0) if master_alone else server.kill()
    for _ in range(4):
        with Server(db, **settings(demo)) as server:
            time.sleep(random.uniform(0.0, 2.0))
            server.kill_master(10.0) if master_alone else server.kill()
    with Server(db, **settings(demo)) as server:
        assert done(server, job_id)["answered"] == ROWS
        lines = results(server, job_id)
        assert server.stop() == 0
    assert_each_row_once(db, lines, ROWS)


@pytest.mark.slow
def test_a_server_that_is_killed_while_jobs_come_has_each_that_it_took_and_no_file_too_many(
    db: Path, demo: DemoServer
) -> None:
    taken: list[str] = []
    for _ in range(3):
        with Server(db, **settings(demo)) as server:
            kill_at = time.monotonic() + random.uniform(0.3, 1.2)
            with suppress(requests.RequestException):
                while time.monotonic() < kill_at:
                    taken.append(submitted(server, 40))
                    # All of them together are fewer than there may be at a time.
                    if len(taken) % 6 == 0:
                        break
            server.kill()
    with Server(db, **settings(demo)) as server:
        for job_id in taken:
            done(server, job_id)
            assert len(results(server, job_id)) == 40
        assert server.stop() == 0
    until(lambda: not list(Path(f"{db}.spool").glob("job_*")))


@pytest.mark.slow
def test_a_server_that_is_told_to_stop_finishes_the_rows_that_are_under_way(
    db: Path, demo: DemoServer
) -> None:
    with Server(db, **settings(demo)) as server:
        job_id = submitted(server)
        until(lambda: job(server, job_id)["answered"] > 50)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 15
    with Server(db, **settings(demo)) as server:
        assert done(server, job_id)["answered"] == ROWS
        assert_each_row_once(db, results(server, job_id), ROWS)


def test_gunicorn_runs_jobs_as_svc_serve_does(db: Path, demo: DemoServer) -> None:
    with GunicornServer(db, **settings(demo)) as server:
        job_id = submitted(server, 200)
        assert done(server, job_id)["answered"] == 200
        assert server.stop() == 0


def test_the_demonstration_model_answers_jobs_too_and_the_runner_goes_when_it_is_idle(
    db: Path,
) -> None:
    with Server(db, "--demo", **KEY) as server:
        job_id = submitted(server, 20)
        assert done(server, job_id)["answered"] == 20
        until(lambda: server.runner is None)
        again = submitted(server, 20)
        assert done(server, again)["answered"] == 20
        assert server.stop(signal.SIGINT) == 0


def test_two_servers_on_one_database_run_a_job_once(db: Path, demo: DemoServer) -> None:
    with Server(db, **settings(demo)) as one, Server(db, **settings(demo)) as two:
        jobs = [submitted(server, 300) for server in (one, two, one, two)]
        assert all(done(two, job_id)["answered"] == 300 for job_id in jobs)


def test_nothing_of_a_row_is_in_the_log_or_in_any_file(db: Path, demo: DemoServer) -> None:
    secret = "the secret of Ada Lovelace"
    with Server(db, SVC_LOG_LEVEL="debug", **settings(demo)) as server:
        rows = [{"id": f"r{n}", "state": f"{secret} {n}"} for n in range(50)]
        body = {"questions": {"animal": ANIMAL}, "rows": rows, "debias": False}
        job_id = server.post(body, "/v1/batch").json()["id"]
        spooled = [path.read_bytes() for path in Path(f"{db}.spool").glob("job_*")]
        done(server, job_id)
        assert server.stop() == 0
        assert secret not in server.log
    files = [path.read_bytes() for path in db.parent.rglob("*") if path.is_file()]
    assert not any(secret.encode() in data for data in [*files, *spooled])
