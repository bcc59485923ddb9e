"""Signs of life of a process that is stopped, continued and killed."""

from __future__ import annotations

import os
import signal
import time

from svc.server.pulse import BEAT_S, Pulse
from tests.store.holding import until

LOOK_S = 0.25


def test_a_process_that_was_stopped_falls_silent_and_one_that_goes_on_does_not() -> None:
    pulse = Pulse()
    pid = os.fork()
    if not pid:
        try:
            pulse.beat()
            time.sleep(60)
        finally:
            os._exit(0)
    try:
        for _ in range(8):
            assert silent_after(pulse, LOOK_S) < 3 * BEAT_S
        os.kill(pid, signal.SIGSTOP)
        until(lambda: silent_after(pulse, LOOK_S) > 2.5 * BEAT_S)
        os.kill(pid, signal.SIGCONT)
        until(lambda: silent_after(pulse, LOOK_S) == 0.0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def silent_after(pulse: Pulse, seconds: float) -> float:
    time.sleep(seconds)
    return pulse.silent_s(time.monotonic(), LOOK_S)


def test_a_look_that_comes_late_counts_as_one() -> None:
    pulse = Pulse()
    assert pulse.silent_s(100.0, LOOK_S) == 0.0
    assert pulse.silent_s(100.25, LOOK_S) == 0.25
    # The one that looks was stopped as well.
    assert pulse.silent_s(500.0, LOOK_S) == 0.5
