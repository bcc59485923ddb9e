"""Sends events that are due, a few at a time, and notes in the database what became of each.

An event is noted as delivered after its receiver has answered. Where this process is killed in
between, the next one sends it once more, with the same id.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from http import HTTPStatus
from typing import Protocol

from svc import __version__
from svc.hooks import retries, signing
from svc.hooks.events import moment
from svc.hooks.sending import Resting, Undelivered
from svc.hooks.targets import RefusedTarget, Target, parsed
from svc.shares import Shares
from svc.store import DueEvent, HookEvents, Hooks, OpenedHook, StorageError
from svc.threads import Threads

# The most events under way at a time, of which a project has its share, and the most of one hook:
# a receiver that hangs does not hold up the others.
THREADS = 16
OF_A_HOOK = 2

# An event whose hook cannot be decrypted is looked at again after so many seconds.
UNREADABLE_S = 60.0

# Nothing is sent for so many seconds after it could not be stored what became of an event.
TROUBLE_S = 5.0

log = logging.getLogger(__name__)


class Posts(Protocol):
    """Sends a body to a target, see `Sender`."""

    def post(
        self, target: Target, allow_private: bool, body: bytes, headers: Mapping[str, str]
    ) -> int: ...


class Deliveries:
    """The events that are under way."""

    def __init__(
        self,
        hooks: Hooks,
        events: HookEvents,
        sender: Posts,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`clock` gives seconds since the epoch, `chance` a number from 0 to 1."""
        self._hooks, self._events, self._sender = hooks, events, sender
        self._clock, self._chance = clock, chance
        self._pool = Threads(THREADS, "hooks")
        self._shares = Shares(THREADS)
        self._lock = threading.Lock()
        self._under_way: dict[int, tuple[int, Future[None]]] = {}
        self._rests_until = 0.0
        self._ended = threading.Event()

    def start(self) -> None:
        """Send what is due, as far as there are threads. Raises `StorageError`."""
        if time.monotonic() < self._rests_until:
            return
        with self._lock:
            # What ends from here on may still be in the list that is read next.
            before = set(self._under_way)
        for event in self._events.due():
            with self._lock:
                if event.seq not in before and self._has_room(event):
                    sent = self._pool.submit(self._send, event)
                    self._under_way[event.seq] = (event.hook, sent)

    def _has_room(self, event: DueEvent) -> bool:
        """Take a thread for it from its project's share; False where there is none."""
        of_hook = sum(hook == event.hook for hook, _ in self._under_way.values())
        return of_hook < OF_A_HOOK and self._shares.take(event.project)

    def rest(self, seconds: float) -> None:
        """Wait until one of those under way has ended, so long at most."""
        self._ended.wait(seconds)
        self._ended.clear()

    def wait(self, seconds: float) -> None:
        """Wait for what is under way, so long at most."""
        with self._lock:
            futures = [future for _, future in self._under_way.values()]
        wait(futures, seconds)

    def close(self, seconds: float = 0.0) -> None:
        """Send no more, and wait so long for what is under way."""
        self.wait(seconds)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _send(self, event: DueEvent) -> None:
        try:
            self._deliver(event)
        except StorageError as error:
            log.error("what became of %s is not stored: %s", event.id, error.message)
            self._rests_until = time.monotonic() + TROUBLE_S
        except Exception:
            log.exception("an event could not be sent")
            self._rests_until = time.monotonic() + TROUBLE_S
        finally:
            with self._lock:
                self._under_way.pop(event.seq, None)
            self._shares.give_back(event.project)
            self._ended.set()

    def _deliver(self, event: DueEvent) -> None:
        opened = self._hooks.opened(event.hook)
        if opened is None:
            why = "its secret cannot be decrypted: check SVC_MASTER_KEY"
            self._events.postponed(event, why, UNREADABLE_S)
            return
        try:
            status = self._post(event, opened)
        except Resting as error:
            self._events.postponed(event, str(error), error.wait_s)
            return
        except (Undelivered, RefusedTarget) as error:
            self._failed(event, str(error))
            return
        if HTTPStatus(200) <= status < HTTPStatus(300):
            self._events.delivered(event)
        elif status == HTTPStatus.GONE:
            when = moment(self._events.now_ms())
            self._events.disable(event.hook, f"its receiver answered 410 Gone at {when}")
            log.warning("%s is disabled: its receiver answered 410 Gone", event.hook_id)
        else:
            self._failed(event, f"it answered {status}")

    def _post(self, event: DueEvent, opened: OpenedHook) -> int:
        headers = {
            "content-type": "application/json",
            "user-agent": f"svc/{__version__}",
            **signing.headers(opened.secret, event.id, event.body, int(self._clock())),
        }
        target = parsed(opened.url)
        return self._sender.post(target, opened.allow_private, event.body.encode(), headers)

    def _failed(self, event: DueEvent, why: str) -> None:
        now = self._clock()
        first_at = now if event.tried_at is None else event.tried_at / 1000
        again_in_s = retries.pause_s(event.attempts + 1, first_at, now, self._chance())
        self._events.failed(event, why, again_in_s)
        if again_in_s is None:
            log.warning("%s is given up for %s: %s", event.id, event.hook_id, why)
        else:
            log.info("%s is not delivered to %s: %s", event.id, event.hook_id, why)
