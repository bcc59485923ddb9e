"""The keeper: a small process beside the workers, which has others run jobs and delete what is old.

The master forks it before its first worker. It holds nothing open but what all processes share, so
that a process which it forks begins as a worker does. Jobs run in a process of their own and not in
a worker: there they would take turns with requests at one interpreter. The sweep, which would hold
up jobs, has a process of its own as well, and so have hooks, whose receivers may hang, and traces.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from svc.errors import SettingsError
from svc.server.forks import end_with_master, name_process, unblock_stop_signals
from svc.server.pulse import Pulse
from svc.sharing import Bell, is_stopped
from svc.threads import lacks_thread

# Does what there is to do, until there is nothing more or the event is set.
Work = Callable[[threading.Event], None]

# The names of processes: the keeper and who runs jobs, who deletes what is old, who tells hooks
# what happens, and who sends traces.
NAME = "svc-jobs"
SWEEP = "svc-sweep"
HOOKS = "svc-hooks"
TRACES = "svc-traces"

# These get less of a busy processor than requests do; see nice(2). The others do not, because
# requests wait for their transactions.
NICENESS = 10
_NICE = (NAME, TRACES)

# The pause between two looks at the process that runs jobs, and the longest between two at the
# keeper's own signals.
LOOK_EVERY_S = 0.25

# Work begins without a bell after so long: a worker may have been killed before it rang.
UNASKED_EVERY_S = 60.0

# The pause before work begins again after its process failed, which doubles up to the most. After
# so long a life the next pause is the first again.
PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LONG_LIFE_S = 60.0

# A process that does such work and gave no sign of life for so long is killed.
SILENT_S = 15.0

# The pause between two looks at whether the keeper has ended.
END_LOOK_S = 0.05

# The pause between two looks that find the keeper stopped. A group of processes that is continued
# together is not continued at one instant.
STOPPED_LOOK_S = 0.2

# The signals by which a master is told what it has to do.
_OF_THE_MASTER = (
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGTTIN, signal.SIGTTOU, signal.SIGWINCH),
)

log = logging.getLogger(__name__)


class Keeper:
    """The keeper's process, as its master sees it."""

    def __init__(self, works: Mapping[str, Work], bell: Bell, listeners: Iterable[Any]) -> None:
        """Fork it. `works` are by the names of their processes, and that called `NAME` also begins
        when `bell` is rung; `listeners` are left to others.
        """
        self._works, self._bell, self._listeners = works, bell, listeners
        self._master = os.getpid()
        # When it was first told to end, by time.monotonic().
        self._told_at = math.inf
        self._fork(0.0)

    def renew(self) -> None:
        """Fork another one where it has ended by itself, or was killed; a stopped one is killed.

        To be called each second, and when the system tells the master of a child, that it was
        stopped too. Raises `OSError` where the system allows no further process.
        """
        if os.getpid() != self._master or self._told_at < math.inf:
            return
        if self._has_ended():
            # Where no other one can be made, the next call tries again.
            self._pid = 0
            self._fork(PAUSE_S)
        elif self._was_stopped():
            self._send(signal.SIGKILL)

    def kill(self) -> None:
        """End it at once, and its processes with it."""
        self._tell(signal.SIGKILL)

    def stop(self) -> None:
        """Have it stop once rows that are under way have ended."""
        self._tell(signal.SIGTERM)

    def end(self, grace_s: float, least_s: float) -> None:
        """Have it stop, and wait for its end until `grace_s` after it was first told to.

        It waits at least `least_s` from now, for what workers left to it, and then kills it.
        """
        self.stop()
        give_up_at = max(self._told_at + grace_s, time.monotonic() + least_s)
        while not self._has_ended():
            if time.monotonic() >= give_up_at:
                self._send(signal.SIGKILL)
                return
            time.sleep(END_LOOK_S)

    def _tell(self, number: signal.Signals) -> None:
        """Tell it to end, and note when that was done first."""
        self._told_at = min(self._told_at, time.monotonic())
        self._send(number)

    def _fork(self, delay_s: float) -> None:
        self._pid = os.fork()
        if not self._pid:
            work = partial(_keep, self._works, self._bell, delay_s, self._master)
            _become(NAME, work, self._master, self._listeners)

    def _send(self, number: signal.Signals) -> None:
        # No process has the id 0, which stands for the whole group.
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def _was_stopped(self) -> bool:
        if not is_stopped(self._pid):
            return False
        time.sleep(STOPPED_LOOK_S)
        return is_stopped(self._pid)

    def _has_ended(self) -> bool:
        try:
            return not self._pid or os.waitpid(self._pid, os.WNOHANG)[0] == self._pid
        except ChildProcessError:
            # The master took note of its end before.
            return True


def _become(
    name: str, work: Callable[[], None], parent: int, listeners: Iterable[Any] = ()
) -> None:
    """Do that in this new process and nothing after it; it ends with its parent."""
    status = 1
    try:
        # The handlers are the parent's until here. Ctrl-C reaches every process of a terminal, and
        # these ones wait for the master's word.
        for number in _OF_THE_MASTER:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for listener in listeners:
            listener.close()
        name_process(name)
        end_with_master(parent)
        work()
        status = 0
    except SettingsError as error:
        log.error("%s does not run: %s", name, error)
    except BaseException as error:
        if isinstance(error, RuntimeError) and lacks_thread(error):
            log.error("%s does not run: the system allows it too few threads", name)
        else:
            log.exception("a process beside the workers failed")
    finally:
        logging.shutdown()
        os._exit(status)


def _keep(works: Mapping[str, Work], bell: Bell, delay_s: float, master: int) -> None:
    """Have work done whenever there is some, until the keeper is told to stop."""
    stopping = _stop_signal()
    if delay_s:
        log.error("the process that keeps jobs running had ended; this is another one")
    begin_at = time.monotonic() + delay_s
    kept = {name: _Kept(name, run, begin_at) for name, run in works.items()}
    rung = False
    while not (stopping.is_set() and not any(one.runs for one in kept.values())):
        if os.getppid() != master:
            # Where the system does not end this process with its master.
            stopping.set()
        for name, one in kept.items():
            one.look(rung and name == NAME, stopping.is_set())
        rung = bell.wait(LOOK_EVERY_S)


class _Kept:
    """Work that a process of its own does, which is started again and again."""

    def __init__(self, name: str, run: Work, begin_at: float) -> None:
        self._name, self._run = name, run
        self._due, self._pause_s, self._next_at = True, PAUSE_S, begin_at
        self._pid, self._began, self._pulse = 0, 0.0, Pulse()

    @property
    def runs(self) -> bool:
        """Whether there is a process that does it."""
        return bool(self._pid)

    def look(self, rung: bool, stopping: bool) -> None:
        """Start the process where it is due, and note its end."""
        now = time.monotonic()
        self._due = rung or self._due or now - self._began >= UNASKED_EVERY_S
        if self._pid and not self._has_ended(now, stopping):
            return
        if self._due and now >= self._next_at and not stopping:
            # What comes from here on is found by the process itself, or rings again.
            self._due, self._began, self._pulse = False, now, Pulse()
            try:
                self._pid = self._start()
            except OSError as error:
                log.error("%s does not begin (%s); again in %g s", self._name, error, PAUSE_S)
                self._due, self._next_at = True, now + PAUSE_S

    def _has_ended(self, now: float, stopping: bool) -> bool:
        status = _ended(self._pid)
        if stopping and status is None:
            self._send(signal.SIGTERM)
        if status is None:
            self._kill_where_silent(now)
            return False
        self._pid = 0
        if status:
            self._pause_s = PAUSE_S if now - self._began >= LONG_LIFE_S else self._pause_s
            log.error("%s ended (%d); again in %g s", self._name, status, self._pause_s)
            self._due, self._next_at = True, now + self._pause_s
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        else:
            self._pause_s = PAUSE_S
        return True

    def _kill_where_silent(self, now: float) -> None:
        """End a process that was stopped or hangs, so that another one goes on with its work."""
        if self._pulse.silent_s(now, LOOK_EVERY_S) >= SILENT_S:
            log.error("%s gave no sign of life for %g s: it is killed", self._name, SILENT_S)
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _start(self) -> int:
        """Fork the process; its id."""
        keeper = os.getpid()
        pid = os.fork()
        if not pid:
            _become(self._name, self._do, keeper)
        return pid

    def _do(self) -> None:
        self._pulse.beat()
        stopping = _stop_signal()
        if self._name in _NICE:
            with contextlib.suppress(OSError):
                os.nice(NICENESS)
        self._run(stopping)


def _stop_signal() -> threading.Event:
    """Set once this process is told to stop."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    unblock_stop_signals()
    return stopping


def _ended(pid: int) -> int | None:
    """The exit status of a process, below 0 where a signal ended it; None while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None
