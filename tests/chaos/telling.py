"""Hooks of two projects: a receiver records what arrives while processes are killed."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

from svc.hooks.looking import CLOSE_LOOK_EVERY_S
from svc.store import MASTER_KEY, PROMISE_KEPT, HookKind, Per
from tests.chaos.behaviours import GOOD
from tests.chaos.callers import Caller
from tests.chaos.clock import Clock
from tests.chaos.journal import BROKEN, Journal
from tests.chaos.parts import MakeCaller, Part, command
from tests.chaos.questions import BOUNDED, QUESTIONS, TOLD, good_request
from tests.chaos.target import Target
from tests.hooks.receiver import Received, Receiver

# The question whose promise labels break, and the one whose answers wait for reviewers.
PROMISED, REVIEWED = "urgent", "topic"

# Labels that make a promise, and those that break it; decisions that wait for reviewers.
RIGHT, WRONG, TO_REVIEW = 60, 20, 3

# Rows of a job.
ROWS = 2

# The seconds within which everything that happened has to arrive, on a busy machine: promises are
# looked at once a minute.
TOLD_WITHIN_S = CLOSE_LOOK_EVERY_S + 15.0

# How many seconds the receiver takes for an event: a sender that is killed meanwhile is followed by
# one that sends the event again.
TAKES_S = 0.03

# How many lines of the log are shown where something is missing.
LINES = 5

# The events that have to arrive in each run.
KINDS = {
    HookKind.BATCH_DONE,
    HookKind.BUDGET_WARNING,
    HookKind.PROMISE_BROKEN,
    HookKind.REVIEW_DUE,
}


def slowly(received: Received, n: int, handler: BaseHTTPRequestHandler) -> int:
    """Answer that an event is taken, after a while."""
    time.sleep(TAKES_S)
    return 204


class Telling(Part):
    """`svc hook add` for a project with a budget, and for one with jobs, labels and a review queue.

    Whatever is killed, each stored event arrives at least once: signed, with the same content under
    the same id each time, and in the order of its subject. An event arrives for each job that
    ended, each budget that was exhausted, a promise that labels broke, and a review queue that is
    not empty.
    """

    def __init__(
        self, receiver: Receiver, journal: Journal, clock: Clock, make_caller: MakeCaller
    ) -> None:
        self._receiver, self._journal = receiver, journal
        self._clock, self._make_caller = clock, make_caller
        # The secrets that sign events, by project.
        self._secrets: dict[str, str] = {}
        # The stored events by id: hook, subject, and place in the order of all.
        self._stored: dict[str, tuple[int, str, int]] = {}
        # The jobs that the server took, and how often the clock had jumped by then.
        self._jobs: dict[str, int] = {}
        self._is_broken, self._lost = False, 0

    def settings(self) -> dict[str, str]:
        return {MASTER_KEY: "for jobs and hooks"}

    def prepare(self, db: Path) -> None:
        for project in (BOUNDED, TOLD):
            url = f"http://127.0.0.1:{self._receiver.port}/{project}"
            words = ("hook", "add", url, "--project", project, "--allow-private")
            self.sign_for(project, command(db, *words, **self.settings()).split()[-1])

    def sign_for(self, project: str, secret: str) -> None:
        """Note what events of a project are signed with."""
        self._secrets[project] = secret

    def set_up(self, target: Target) -> None:
        caller = self._make_caller()
        self._label(caller, RIGHT, are_right=True)
        for _ in range(TO_REVIEW):
            caller.ask(good_request(TOLD, REVIEWED))
        # Somebody reviews, and leaves the rest.
        queue = f"/v1/review?project={TOLD}&question={REVIEWED}&reviewer=a&limit=1"
        assert caller.send("read", "GET", queue).status == 200
        caller.hang_up()

    def look(self, db: Path) -> Iterator[str]:
        self._excuse_lost_jobs()
        self._note(db)
        self._submit()
        return iter(())

    def turn(self, target: Target) -> Iterator[str]:
        give_up_at = time.monotonic() + TOLD_WITHIN_S
        while (missing := self.missing(target.db)) and time.monotonic() < give_up_at:
            time.sleep(0.2)
        yield from missing
        if missing:
            yield from said_of_hooks(target.log)
        if not self._is_broken:
            # The process that sends after the kill has to notice that the promise is broken.
            caller = self._make_caller()
            self._label(caller, WRONG, are_right=False)
            caller.hang_up()
            self._is_broken = True

    def judge(self, connection: sqlite3.Connection) -> Iterator[str]:
        arrived = list(self._receiver.journal)
        yield from unsigned(arrived, self._secrets)
        yield from changed(arrived)
        yield from disordered(arrived, self._stored)
        for event_id in self._stored.keys() - {one.id for one in arrived}:
            yield f"{event_id} was stored and has never arrived"
        if absent := KINDS - {one.event["type"] for one in arrived}:
            yield f"nothing was told of {', '.join(sorted(absent))}"

    def line(self) -> str:
        arrived = self._receiver.journal
        kinds = Counter({one.id: one.event["type"] for one in arrived}.values())
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        return (
            f"hooks: {kinds.total()} events ({counts}) in {len(arrived)} requests; "
            f"{len(self._jobs)} jobs told of, {self._lost} may be lost to a clock that jumped"
        )

    def _label(self, caller: Caller, count: int, are_right: bool) -> None:
        for _ in range(count):
            decision = caller.ask(good_request(TOLD, PROMISED)).body
            is_yes = decision["answers"][PROMISED]["noul"] >= 0.5
            caller.label_as(decision, PROMISED, is_yes == are_right)

    def _submit(self) -> None:
        """Submit a job. If the server takes it, its end has to be told."""
        requests = [good_request(TOLD, "mood") for _ in range(ROWS)]
        for one in requests:
            # Its decision may be stored or not, and nobody looks at its answer.
            self._journal.decided(one, BROKEN, None)
        body = {
            "project": TOLD,
            "model": f"@odd/{GOOD}",
            "debias": False,
            "questions": {"mood": QUESTIONS["mood"]},
            "rows": [{"id": f"r{n}", "state": one["state"]} for n, one in enumerate(requests)],
        }
        caller = self._make_caller()
        said = caller.send("batch", "POST", "/v1/batch", body)
        caller.hang_up()
        if said.status == 202:
            self.took(said.body["id"])

    def took(self, job: str) -> None:
        """Note a job that the server has taken."""
        self._jobs[job] = self._clock.jumps

    def _excuse_lost_jobs(self) -> None:
        """Expect no event of a job once the clock jumped: a year ahead, ended jobs are deleted."""
        late = [job for job in self._untold_jobs() if self._jobs[job] != self._clock.jumps]
        for job in late:
            del self._jobs[job]
        self._lost += len(late)

    def _untold_jobs(self) -> list[str]:
        told = {data["id"] for data in self._told(HookKind.BATCH_DONE)}
        return [job for job in self._jobs if job not in told]

    def _told(self, kind: HookKind) -> list[dict[str, Any]]:
        """The data of the events of a kind that have arrived."""
        events = [one.event for one in list(self._receiver.journal)]
        return [one["data"] for one in events if one["type"] == kind]

    def _note(self, db: Path) -> int:
        """Note which events are stored; how many of them wait."""
        with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
            rows = connection.execute(_EVENTS).fetchall()
        self._stored.update(
            (event_id, (hook, subject, seq)) for seq, event_id, hook, subject, _ in rows
        )
        return sum(waits for *_, waits in rows)

    def missing(self, db: Path) -> list[str]:
        """What has happened, but has not arrived."""
        self._excuse_lost_jobs()
        missing = [f"nobody was told that {job} ended" for job in self._untold_jobs()]
        if waiting := self._note(db):
            missing.append(f"{waiting} events wait for a receiver that takes everything")
        month = Per.MONTH.period(self._clock.now)
        said = [(one["period"], one["level"]) for one in self._told(HookKind.BUDGET_WARNING)]
        if (month, "exhausted") not in said:
            missing.append(f"nobody was told that the budget of {month} is exhausted")
        if not self._told(HookKind.REVIEW_DUE):
            missing.append("nobody was told that a review is due")
        if self._is_broken and not self._told(HookKind.PROMISE_BROKEN):
            missing.append("nobody was told that a promise is broken")
        if not self._is_broken and not _is_promised(db):
            missing.append(f"nobody has noticed that {RIGHT} labels make a promise")
        return missing


_EVENTS = "SELECT seq, id, hook, subject, settled_at IS NULL FROM hook_events"
_KEPT = "SELECT count(*) FROM hook_alarms WHERE project = ? AND kind = ?"


def _is_promised(db: Path) -> bool:
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        return bool(connection.execute(_KEPT, (TOLD, PROMISE_KEPT)).fetchone()[0])


def said_of_hooks(log: str) -> list[str]:
    """The last lines of a log that are about hooks, which may say why something is missing."""
    lines = [line for line in log.splitlines() if "hooks" in line]
    return [f"the log says: {line}" for line in lines[-LINES:]]


def unsigned(arrived: list[Received], secrets: dict[str, str]) -> Iterator[str]:
    """Events whose signature is not what the official library makes with their project's secret.

    It signs for the time in the header, since the server's clock was turned or jumped.
    """
    for one in arrived:
        signed_at = datetime.fromtimestamp(int(one.headers["webhook-timestamp"]), UTC)
        right = Webhook(secrets[one.path[1:]]).sign(one.id, signed_at, one.body.decode())
        if right not in one.headers["webhook-signature"].split():
            yield f"the signature of {one.id} is wrong"


def changed(arrived: list[Received]) -> Iterator[str]:
    """Events that arrived again with another path or body."""
    first: dict[str, Received] = {}
    for one in arrived:
        before = first.setdefault(one.id, one)
        if (before.path, before.body) != (one.path, one.body):
            yield f"{one.id} arrived again as another event"


def disordered(arrived: list[Received], stored: dict[str, tuple[int, str, int]]) -> Iterator[str]:
    """Events that arrived after a later one on their subject."""
    latest: dict[tuple[int, str], int] = defaultdict(int)
    for one in arrived:
        if one.id in stored:
            hook, subject, seq = stored[one.id]
            if seq < latest[hook, subject]:
                yield f"{one.id} arrived after a later event on {subject}"
            latest[hook, subject] = max(seq, latest[hook, subject])
