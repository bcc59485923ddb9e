"""The lives of the server: load, faults, rests, kills."""

from __future__ import annotations

import random
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from svc import limits
from tests.chaos.aging import Aging
from tests.chaos.behaviours import GOOD, SLOW, SlowTls, Weather
from tests.chaos.callers import CONNECTIONS, Caller, Load
from tests.chaos.clock import Clock
from tests.chaos.faults import Fault, faults, kill_a_worker
from tests.chaos.gate import Gate
from tests.chaos.journal import BROKEN, Journal, Window
from tests.chaos.ledger import Ledger
from tests.chaos.parts import Part
from tests.chaos.questions import QUESTIONS, request
from tests.chaos.rival import Rival
from tests.chaos.spending import Spending
from tests.chaos.target import Footing, Target
from tests.chaos.telling import Telling, slowly
from tests.chaos.verdict import leaks
from tests.hooks.receiver import Receiver
from tests.scripted import ScriptedProvider

WORKERS = (1, 2)  # of one life after the other; of a short run the last
SHORT_S = 100.0  # seconds; a run below it has each fault once, in its shortest form
WARM_S, CALM_S = 1.0, 0.5  # seconds under load: before the first fault, and after each
END_S = 12.0  # seconds that a life takes after its faults
KILLS, SHORT_KILLS = 6, 2  # of each life
MASTERS = 1  # kills of the master alone, of each life
GONE_S = 5.0  # seconds in which a server without a master is gone, on a busy machine
KILL_AFTER_S = (0.2, 1.0)  # seconds under load
REST_S = 6.0  # seconds at most until nothing changes any more
LOOK_S = 0.3  # seconds between two looks at what the server holds
# More calls than the load makes at once, so that pools are as full before as after.
FULLY = {
    "model": {"council": [f"@odd/{SLOW}-{n}" for n in range(3)]},
    "questions": {key: QUESTIONS[key] for key in ("topic", "name")},  # of which one thinks
    "debias": True,
}
SPARE = 30  # threads and files that may come and go, where thousands of calls failed
# What the pools of one worker may hold when calls hang: requests, flows and calls to providers.
POOLS = limits.REQUEST_THREADS * (2 + limits.CALLS_PER_REQUEST_THREAD)
# Of each worker: what its heap may still fill after the first load. Seven runs of four minutes grew
# by 52 to 116 MB and ended at 236 to 294, whatever the number of faults.
MEMORY_MB = 150.0
BROKE = frozenset({BROKEN})


class Run:
    """One run on one database; afterwards it holds what there is to judge."""

    def __init__(
        self,
        folder: Path,
        certificate: Path,
        seconds: float,
        real_disk: bool,
        masters: int = MASTERS,
    ) -> None:
        """The database lies in `folder`, a file system of its own when `real_disk`.

        `masters` is how often the master alone is killed, in each life.
        """
        self._masters = masters
        self.gone_s: list[float] = []  # after each kill of the master: until the server was gone
        self.db, self.journal = folder / "svc.db", Journal()
        self.footings: list[tuple[int, Footing, Footing]] = []  # of each life: workers, two rests
        self._seconds, self._certificate = seconds, certificate
        self.clock, self._gate, ledger = Clock(folder / "clock"), Gate(), Ledger()
        self._weather, self._receiver = Weather(ledger), Receiver(slowly)
        self._faults = faults(self._weather, self._gate, real_disk, self.journal.problem)
        self.parts: tuple[Part, ...] = (
            Spending(ledger, self.clock, self._caller),
            Aging(self.journal, self.clock, self._caller),
            Rival(self._weather, ledger, self.clock, self._caller),
            # The last one to look whether all is told that came about for the others.
            Telling(self._receiver, self.journal, self.clock, self._caller),
        )
        self._short = seconds < SHORT_S
        self._url = ""  # where the last server is or was
        self._target: Target
        self._providers: tuple[ScriptedProvider, ...] = ()

    def run(self) -> None:
        """A life of the server on one worker and one on two; a short run has the second alone."""
        with ExitStack() as stack:
            odd = stack.enter_context(ScriptedProvider(self._weather))
            tls = stack.enter_context(SlowTls(self._weather, self._certificate))
            closed = stack.enter_context(socket.socket())
            closed.bind(("127.0.0.1", 0))  # nobody listens
            settings = self._settings(odd.url, tls.url, closed.getsockname()[1])
            stack.enter_context(self._receiver)
            stack.callback(lambda: self._target.kill())
            self._providers = (odd, tls)
            lives = WORKERS[-1:] if self._short else WORKERS
            for workers in lives:
                self._live(workers, settings, self._seconds / len(lives))

    def _settings(self, odd: str, tls: str, closed: int) -> dict[str, str]:
        return {
            "SVC_PROVIDER_ODD_URL": odd,
            "SVC_PROVIDER_ODD_TIMEOUT": "2",
            "SVC_PROVIDER_TLS_URL": tls,
            "SVC_PROVIDER_TLS_TIMEOUT": "2",
            "SVC_PROVIDER_REFUSED_URL": f"http://127.0.0.1:{closed}/v1",
            # What costs money is asked of the same provider as the aggregator.
            "SVC_PROVIDER_URL": odd,
            "SVC_PROVIDER_OPENROUTER_TIMEOUT": "2",
            "SVC_RPM": "1000000",
            "REQUESTS_CA_BUNDLE": str(self._certificate),
            "SVC_MODEL": f"@odd/{GOOD}",
            "SVC_LOG_LEVEL": "error",
            **{name: value for part in self.parts for name, value in part.settings().items()},
        }

    def _live(self, workers: int, settings: dict[str, str], seconds: float) -> None:
        """One life: faults between two rests, then kills under load, then a graceful end.

        Unless it is short, the first rest comes after every fault was on once, when heaps and
        pools are about as large as they get.
        """
        faults_end = time.monotonic() + seconds - END_S
        is_first = not self.footings
        if is_first:
            for part in self.parts:
                part.prepare(self.db)
        else:
            self.clock.turn()
        self._start(workers, settings)
        if is_first:
            for part in self.parts:
                part.set_up(self._target)
        with self._load():
            time.sleep(WARM_S)
            if not self._short:
                self._suffer_all()
        before = self._rest()
        with self._load():
            self._suffer_all()
            while not self._short and time.monotonic() < faults_end:
                self._suffer_all()
        after = self._rest()
        self.footings.append((workers, before, after))
        self.journal.problems += leaks(before, after, self._most(workers, before))
        self._end(workers, settings)

    def _most(self, workers: int, before: Footing) -> Footing:
        """The most that a life may hold at its second rest.

        Pools that every fault has filled before the first rest stay as they are. In a short run
        they were not filled, and of several workers either may get most of the callers: what
        holds there is the bound of the pools.
        """
        memory_mb = before.memory_mb + MEMORY_MB * workers
        if self._short or workers > 1:
            most = workers * POOLS + SPARE
            return Footing(most, most, memory_mb)
        return Footing(before.threads + SPARE, before.files + SPARE, memory_mb)

    def _end(self, workers: int, settings: dict[str, str]) -> None:
        """On another day of another month: what is old is deleted under load, between kills."""
        self._turn()
        self.clock.turn()
        with self._load():
            if workers > 1:
                self._kill_a_worker()
            for _ in range(SHORT_KILLS if self._short else KILLS):
                self._kill(workers, settings)
            for _ in range(self._masters):
                self._kill_the_master(workers, settings)
        self._turn()
        self._stop()
        self._read_log()

    def _stop(self) -> None:
        try:
            if (code := self._target.stop()) != 0:
                self.journal.problem(f"a graceful stop ended with {code}")
        except subprocess.TimeoutExpired as error:
            self.journal.problem(f"a graceful stop took more than {error.timeout:g} s")
            self._target.kill()

    def _start(self, workers: int, settings: dict[str, str]) -> None:
        self._target = Target(self.db, self.clock, "--workers", str(workers), **settings)
        self._target.__enter__()
        self._url = self._target.url

    def _load(self) -> Load:
        return Load(self._caller)

    def _caller(self) -> Caller:
        return Caller(lambda: self._url, self.journal, self.clock, self._gate)

    def _turn(self) -> None:
        for part in self.parts:
            self.journal.problems += part.turn(self._target)

    def _suffer_all(self) -> None:
        """Every fault once, in random order."""
        for fault in random.sample(self._faults, len(self._faults)):
            self._suffer(fault)

    def _suffer(self, fault: Fault) -> None:
        began = time.monotonic()
        with fault.on(self._target):
            time.sleep(fault.short_s if self._short else random.choice(fault.seconds))
        self._recover(fault.name, began, time.monotonic(), fault.excuses)
        time.sleep(CALM_S)
        for provider in self._providers:
            provider.requests.clear()  # nobody looks at them, and they add up

    def _kill_a_worker(self) -> None:
        time.sleep(random.uniform(*KILL_AFTER_S))
        began = time.monotonic()
        kill_a_worker(self._target)
        self._recover("a worker killed", began, began, BROKE)

    def _kill(self, workers: int, settings: dict[str, str]) -> None:
        time.sleep(random.uniform(*KILL_AFTER_S))
        began = time.monotonic()
        self._target.kill()
        self._read_log()
        self._start(workers, settings)
        # How long a start takes is measured elsewhere, on a machine without this load.
        self._recover("kill -9", began, time.monotonic(), BROKE)

    def _kill_the_master(self, workers: int, settings: dict[str, str]) -> None:
        time.sleep(random.uniform(*KILL_AFTER_S))
        began = time.monotonic()
        try:
            self.gone_s.append(self._target.kill_master(GONE_S))
        except AssertionError as error:
            self.journal.problem(f"the master was killed, and {error}")
            self._target.kill()
        self._read_log()
        self._start(workers, settings)
        self._recover("the master killed", began, time.monotonic(), BROKE)

    def _recover(self, name: str, began: float, ended: float, excuses: frozenset[int]) -> None:
        """Ask until the server answers, and note how long that took; then each part looks."""
        while not self._answers() and time.monotonic() < ended + REST_S:
            time.sleep(0.02)
        self.journal.windows.append(Window(name, began, ended, time.monotonic(), excuses))
        for part in self.parts:
            self.journal.problems += part.look(self.db)

    def _answers(self) -> bool:
        body = {**request(), "model": f"@odd/{GOOD}", "questions": {"mood": QUESTIONS["mood"]}}
        return self._decide(body) == 200

    def _decide(self, body: dict[str, object]) -> int:
        caller = self._caller()
        status = caller.ask(body).status
        caller.hang_up()
        return status

    def _rest(self) -> Footing:
        """What the server holds with all its pools filled and nothing to do."""
        fully = [{**request(), **FULLY} for _ in range(CONNECTIONS)]
        with ThreadPoolExecutor(CONNECTIONS) as callers:
            list(callers.map(self._decide, fully))
        end, last = time.monotonic() + REST_S, None
        while (now := self._target.footing()) != last and time.monotonic() < end:
            last = now
            time.sleep(LOOK_S)
        return now

    def _read_log(self) -> None:
        for word in ("Traceback", "unforeseen"):
            if word in self._target.log:
                at = self._target.log.index(word)
                self.journal.problem(f"the log says: {self._target.log[at : at + 3_000]}")
