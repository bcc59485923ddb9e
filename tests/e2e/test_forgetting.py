"""After `svc forget` beside a running server no byte of a subject is in any file."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from svc.demo import DemoServer
from svc.store import Database, Retentions, ids
from svc.store.decisions import Decisions
from tests.e2e.serving import ROOT, WAIT_S, Server, environment, stored
from tests.e2e.test_jobs import done, settings
from tests.store.holding import until
from tests.store.records import record

REF, STATE = "customer Ann-Zaphod", "Zaphod Beeblebrox wants 4242 dollars back for parcel QX-77."
QUESTIONS = {
    "topic": {"type": "choice", "instructions": "What?", "options": {"refund": "", "parcel": ""}},
    "who": {"type": "text", "instructions": "Who writes?"},
}
OWN = {"own": {"type": "noul", "instructions": "Does Zaphod Beeblebrox sound angry?"}}
SECRETS = (b"Zaphod", b"Beeblebrox", b"QX-77", b"row-of-Ann", b"said-of-Ann")


def body(ref: str, state: str, **fields: Any) -> dict[str, Any]:
    return {"state": state, "ref": ref, "questions": QUESTIONS, "project": "shop", **fields}


def decided(server: Server, given: dict[str, Any], key: str | None = None) -> requests.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = requests.post(f"{server.url}/v1/decide", json=given, headers=headers, timeout=WAIT_S)
    assert answer.status_code == 200, answer.text
    return answer


def forget(db: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "svc.cli.main", "forget", "--project", "shop", "--db", str(db)]
    return subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=environment(SVC_MASTER_KEY="for jobs"),
        capture_output=True,
        text=True,
        timeout=2 * WAIT_S,
        check=False,
    )


def bytes_beside(db: Path) -> bytes:
    files = [path for path in db.parent.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {db.name, f"{db.name}-wal", f"{db.name}-shm"}
    return b"".join(path.read_bytes() for path in files)


@contextlib.contextmanager
def others(server: Server) -> Iterator[None]:
    """Inside the block others decide and read pages."""
    stop = threading.Event()

    def work(number: int) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            decided(server, body(f"other-{number}-{count}", f"A refund, {number} {count}."))
            server.get("/v1/audit?project=shop&limit=50").raise_for_status()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_no_byte_of_a_subject_is_left_beside_a_running_server(db: Path, demo: DemoServer) -> None:
    with Server(db, "--workers", "2", **settings(demo)) as server, others(server):
        known = [decided(server, body(REF, f"{STATE} {n}")).json() for n in range(30)]
        known.append(decided(server, body(REF, STATE, questions=OWN)).json())
        first = decided(server, body(REF, STATE), key="once")
        again = decided(server, body(REF, STATE), key="once")
        assert again.headers["Idempotent-Replayed"] == "true"
        known.append(first.json())
        for one in known[:5]:
            label = {"question": "topic", "label": "refund", "reviewer": "said-of-Ann"}
            given = {"decision_id": one["id"], **label}
            assert server.post(given, "/v1/feedback").status_code == 200
        who = {"decision_id": known[0]["id"], "question": "who", "label": "Zaphod Beeblebrox"}
        assert server.post(who, "/v1/feedback").status_code == 200
        rows = [{"id": "row-of-Ann", "state": STATE, "ref": REF}, {"id": "r2", "state": "A cat."}]
        job = {"questions": QUESTIONS, "rows": rows, "project": "shop"}
        job_id = server.post(job, "/v1/batch").json()["id"]
        done(server, job_id)
        queue = "/v1/review?project=shop&question=topic&reviewer=bob&limit=20"
        server.get(queue).raise_for_status()

        held = bytes_beside(db)
        ids_of = [one["id"] for one in known]
        assert all(secret in held for secret in SECRETS)
        counted = forget(db, "--ref", REF, "--dry-run")
        assert "decisions: 33" in counted.stdout, counted.stdout + counted.stderr
        assert all(secret in bytes_beside(db) for secret in SECRETS)

        ended = forget(db, "--ref", REF)
        assert ended.returncode == 0, ended.stderr
        for words in ("decisions: 33", "labels: 6", "rows of jobs: 1", "backups", "logs"):
            assert words in ended.stdout, ended.stdout
        left = bytes_beside(db)
        assert [secret for secret in SECRETS if secret in left] == []
        assert not any(one.encode() in left for one in ids_of)
        assert not any((ids.parse(one) or b"?") in left for one in ids_of)

        assert server.get(f"/v1/decisions/{ids_of[0]}").status_code == 404
        url, once = f"{server.url}/v1/decide", {"Idempotency-Key": "once"}
        repeated = requests.post(url, json=body(REF, STATE), headers=once, timeout=WAIT_S)
        assert repeated.status_code == 422 and "deleted since" in repeated.text
        afresh = decided(server, body(REF, STATE)).json()
        assert not afresh["cached"] and afresh["id"] not in ids_of
        results = server.get(f"/v1/batch/{job_id}/results").text.splitlines()
        assert [json.loads(line)["id"] for line in results] == ["r2"]
        for report in ("calibration", "drift", "rates"):
            path = f"/v1/{report}?project=shop&question=topic"
            server.get(path).raise_for_status()
        server.get(queue).raise_for_status()
    with contextlib.closing(sqlite3.connect(db)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_state_is_found_by_its_file(db: Path, demo: DemoServer, tmp_path: Path) -> None:
    with Server(db, **settings(demo)) as server:
        texts = {"text": STATE, "n": 1.10}
        for state in (STATE, texts, "A cat."):
            decided(server, {**body("r", ""), "state": state})
        for name, content in (("a.txt", f"{STATE}\n"), ("b.json", json.dumps(texts, indent=2))):
            path = tmp_path / name
            path.write_text(content)
            assert "decisions: 1" in forget(db, "--state-file", str(path)).stdout
    assert len(stored(db)) == 1


def test_who_holds_the_log_is_told_of(db: Path, demo: DemoServer) -> None:
    with Server(db, **settings(demo)) as server:
        decided(server, body(REF, STATE))
        with contextlib.closing(sqlite3.connect(db, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM decisions").fetchone()
            command = threading.Thread(target=lambda: ended.append(forget(db, "--ref", REF)))
            ended: list[subprocess.CompletedProcess[str]] = []
            command.start()
            until(lambda: not stored(db))
            # The server goes on.
            decided(server, body("other", "A cat."))
            assert command.is_alive()
            reader.execute("COMMIT")
            command.join()
        assert ended[0].returncode == 0, ended[0].stderr
        assert b"Zaphod" not in bytes_beside(db)


def test_a_running_server_deletes_what_is_too_old(db: Path, demo: DemoServer) -> None:
    database = Database.open(db)
    before = Decisions(database, lambda: time.time() - 5 * 86_400)
    old = [before.add(record()) for _ in range(300)]
    Retentions(database).set("default", 2)
    database.close()
    with Server(db, **settings(demo)) as server:
        until(lambda: not set(old) & stored(db).keys())
        assert decided(server, {**body("r", "A cat."), "project": "default"}).json()["id"]
        for path in ("/v1/audit", "/v1/projects", "/v1/drift?question=topic"):
            server.get(path).raise_for_status()
        server.get("/v1/calibration?question=topic").raise_for_status()
    assert len(stored(db)) == 1
