from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from svc import jsontext
from svc.app import create_app
from svc.bootstrap import Shared, build
from svc.bulk.process import run_jobs
from svc.bulk.runner import Pauses
from svc.settings import Settings, load
from tests.scripted import Handler, ScriptedProvider
from tests.store.copies import copied
from tests.web.models import ANIMAL, replying

WAIT_S = 30.0
Json = dict[str, Any]


def until(found: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not found():
        assert time.monotonic() < give_up_at, "it did not come"
        time.sleep(0.01)


class World:
    """A server without its workers, and its provider; jobs run inside `running`."""

    def __init__(self, app: Flask, settings: Settings, provider: ScriptedProvider) -> None:
        self.app, self.settings, self.provider = app, settings, provider
        self.client: FlaskClient = app.test_client()
        self.services = app.extensions["svc"]

    def submit(
        self,
        count: int = 3,
        headers: Mapping[str, str] | None = None,
        about: str = "Cat",
        **fields: Any,
    ) -> str:
        rows = [{"id": f"r{n}", "state": f"{about} {n}."} for n in range(1, count + 1)]
        body = {"questions": {"animal": ANIMAL}, "rows": rows, "debias": False, **fields}
        answer = self.client.post("/v1/batch", json=body, headers=headers)
        assert answer.status_code == 202, answer.text
        return str(answer.get_json()["id"])

    def job(self, job_id: str) -> Json:
        return dict(self.client.get(f"/v1/batch/{job_id}").get_json())

    def ended(self, job_id: str, status: str = "done") -> Json:
        """The job, once it has ended."""
        until(lambda: self.job(job_id)["status"] not in ("waiting", "running"))
        job = self.job(job_id)
        assert job["status"] == status, job
        return job

    def results(self, job_id: str) -> list[Json]:
        text = self.client.get(f"/v1/batch/{job_id}/results").text
        return [jsontext.loads(line.encode()) for line in text.splitlines()]

    def settled_no_more(self) -> None:
        """Have no row settled that was, as in a database from a backup beside a newer spool."""

        def unsettle(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM job_rows")
            connection.execute("UPDATE jobs SET answered = 0, failed = 0")

        self.services.database.write(unsettle)

    def spooled(self) -> list[str]:
        return [path.name for path in self.services.spool.folder.glob("job_*")]

    @contextmanager
    def running(self, idle_s: float = 60.0) -> Iterator[None]:
        """Inside the block jobs run, in a thread in place of a process, with short pauses."""
        stop = threading.Event()
        shared = Shared()
        pauses = Pauses(look=0.05, idle=idle_s, retries=(0.1, 0.3), outage=0.1)
        runner = threading.Thread(target=run_jobs, args=(self.settings, shared, stop, pauses))
        runner.start()
        try:
            yield
        finally:
            stop.set()
            runner.join(WAIT_S)
            assert not runner.is_alive()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    with ExitStack() as stack:

        def make(handler: Handler | None = None, **environ: str) -> World:
            provider = stack.enter_context(ScriptedProvider(handler or replying()))
            settings = load(
                {
                    "SVC_DB": str(copied(tmp_path / "svc.db")),
                    "SVC_MODEL": "@scripted/m",
                    "SVC_PROVIDER_SCRIPTED_URL": provider.url,
                    "SVC_MASTER_KEY": "master",
                    **environ,
                }
            )
            services = build(settings)
            stack.callback(services.close)
            return World(create_app(services), settings, provider)

        yield make
