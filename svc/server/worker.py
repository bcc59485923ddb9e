"""The worker: one thread polls every connection, and the others each answer one request.

Gunicorn gives a thread to a connection when its first byte comes. Here it gets one when the head
of a request is complete; before that, between requests, and while it is being closed, it costs a
file and nothing else. Threads that wait for a body, or for a caller to take in its response, give
way when all are taken. A few threads are kept for requests that only look at the server, as
`lane.py` says.

The polling thread never sleeps and waits on nothing but its poller: what has to happen later is
noted with its time, and the poller wakes it then.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import select
import socket
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from selectors import EVENT_READ
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from gunicorn.workers.gthread import _DEFER, ThreadWorker

from svc.http import ARRIVED, KNOWN, LEAVING, LOOKS
from svc.limits import STRANGERS_LOGGED
from svc.logs import FIELDS, Sparingly
from svc.server.balance import ConnectionBalancer
from svc.server.departures import Departures
from svc.server.descriptors import allow_connections
from svc.server.early_responses import refusal, response
from svc.server.forks import ORPHANED, end_with_master, unblock_stop_signals
from svc.server.lane import RESERVED_THREADS, Lane, watches
from svc.server.refusals import JUST_NOW_S, Refusals, origin
from svc.server.request_reading import BodyReader, CallerReader
from svc.server.sending import SEND_S, ResponseSocket, Waiting
from svc.server.unwanted import Unwanted
from svc.sharing import WorkerLoads
from svc.threads import Threads, lacks_thread

log = logging.getLogger(__name__)

# What `handle` returns of a connection that waits in line.
_IN_LINE = object()

# The time for a head, from the connection's or the head's first byte.
HEAD_S = 10.0

# How long a thread waits for the next request of its connection, before it takes another's.
NEXT_REQUEST_MS = 10

# How long a thread that computes may go on while others wait for the interpreter. A small request
# waits for it a dozen times; with the usual 5 ms it took 50 ms beside one whose replies are long.
SWITCH_S = 0.001

# The statuses of who looks at the server: all is well, or it is not ready.
_LOOKS = ("200", "503")

# The pause before another worker is begun in the place of one that the system allowed no thread,
# and what the master is told, which is none of the statuses that end the server.
BEGUN_AGAIN_S = 1.0
THREADLESS = 1

# The pause before a worker looks again whether another took the connection that it left.
OFFER_CHECK_S = 0.001

# The seconds for a caller to close its side of a connection after us. One that still sends a body
# which nobody reads any more has longer. Either may send so many bytes meanwhile.
LINGER_S = 2.0
UNWANTED_S = 10.0
UNWANTED_BYTES = 64 * 1024 * 1024

# The time for a body to come or a response to be taken in, when all threads are taken.
SLOW_CALLER_S = 1.0

# The pause in accepting when the system has no file for a connection, and the time between two log
# lines that say so.
NO_FILES_PAUSE_S = 1.0
NO_FILES_LOG_S = 60.0
NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Worker(ThreadWorker):  # type: ignore[misc]
    """Gunicorn's threads behind a poller that reads heads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The connections that wait for their caller to close, and those whose caller still sends a
        # body, which is thrown away.
        self._lingering: deque[Any] = deque()
        self._discarding: deque[Any] = deque()
        # The connection and the request of each request that has a thread, by the socket.
        self._under_way: dict[socket.socket, tuple[Any, Any]] = {}
        # The requests that have a thread or wait for one.
        self._requests = 0
        self._no_files = False
        self._waiting = Waiting()
        self._departures = Departures()
        self._lane = Lane(self.cfg.threads)
        self._malformed = Sparingly(STRANGERS_LOGGED)
        self._refusals, self._unwanted = Refusals(), Unwanted()
        # Times on the monotonic clock before which something is not done again.
        self._next_accept_at = self._next_check_at = self._next_log_at = 0.0

    def init_process(self) -> None:
        """In the new process, before the application is built."""
        self.worker_connections = allow_connections(self.cfg.worker_connections)
        self.max_keepalived = max(1, self.worker_connections - self.cfg.threads)
        sys.setswitchinterval(SWITCH_S)
        try:
            super().init_process()
        except RuntimeError as error:
            if self.booted or not lacks_thread(error):
                raise
            # Gunicorn ends the server for a worker that fails at its start, and not for this.
            log.error("a worker does not begin, since the system allows no further thread")
            time.sleep(BEGUN_AGAIN_S)
            sys.exit(THREADLESS)

    def get_thread_pool(self) -> Threads:
        """The threads of the lane and the reserved ones."""
        return Threads(self.cfg.threads + RESERVED_THREADS, "svc-request")

    def init_signals(self) -> None:
        """Listen to signals, let those through that came before, and end when the master does.

        A change of the process's user, which comes before, would make the system forget the last.
        """
        super().init_signals()
        unblock_stop_signals()
        end_with_master(self.ppid)

    def is_parent_alive(self) -> bool:
        """True; a worker whose master is gone ends here and now, and leaves the port to others.

        Nobody could stop or replace it, and what it answered is durable.
        """
        if not super().is_parent_alive():
            os._exit(ORPHANED)
        return True

    def load_wsgi(self) -> None:
        """Build the application, with `_answer` around it."""
        super().load_wsgi()
        shared = self.wsgi.extensions["svc"].shared
        self.join(shared.worker_loads)
        self._refusals.shared = shared.buckets
        self.wsgi.wsgi_app = partial(self._answer, self.wsgi.wsgi_app)

    def join(self, loads: WorkerLoads) -> None:
        """Divide connections with the workers that share `loads`; before the first turn."""
        self._loads = loads
        # The first time waits for a lock, which the polling thread must not do.
        loads.publish(0)
        self._balancer = ConnectionBalancer(loads.least_of_others)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait `timeout` seconds at most, and no longer than until something has to be done."""
        pause_s = self._next_accept_at - time.monotonic()
        if pause_s > 0:
            timeout = min(timeout, pause_s)
        due_in = min(self._refusals.due_in(), self._unwanted.due_in())
        timeout = min(timeout, max(0.0, due_in))
        super().wait_for_and_dispatch_events(timeout)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Accept connections or not; no pause in accepting is cut short.

        Stopping, refuse them at once: nobody would answer those left in the queue.
        """
        if enabled and (not self.alive or time.monotonic() < self._next_accept_at):
            return
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection, unless another worker or a lack of files leaves it in the queue."""
        if self._balancer.offers(self.nr_conns):
            self._pause_accepting(OFFER_CHECK_S)
            return
        try:
            super().accept(listener)
        except OSError as error:
            if error.errno not in NO_FILES:
                raise
            self._no_files = True
            if (now := time.monotonic()) >= self._next_log_at:
                self._next_log_at = now + NO_FILES_LOG_S
                log.error(
                    "a new connection has to wait: the system has no file or memory for it (%s)",
                    errno.errorcode[error.errno],
                )

    def _pause_accepting(self, seconds: float) -> None:
        """Leave new connections in the queue for so long; the others are served meanwhile."""
        self._next_accept_at = time.monotonic() + seconds
        self.set_accept_enabled(False)

    def enqueue_req(self, conn: Any) -> None:
        """Let a thread handle a connection of which there is something to read."""
        self._requests += 1
        conn.arrived = time.monotonic()
        # Whether its body was still coming when the request was answered, whether the answer is
        # held, and whether it is a look at the server that follows no other one at once.
        conn.still_sends = conn.holds = conn.is_calm = False
        conn.held_s = 0.0
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> object:
        """In a thread: answer one request, or say that its head is not there yet."""
        if not conn.initialized:
            conn.init()
            # Whether it was given a place in the lane, and when it was answered last.
            conn.placed, conn.answered_at = False, -math.inf
            conn.sock = ResponseSocket(conn.sock, self._waiting)
            conn.parser.unreader = CallerReader(conn.sock)
        if not conn.parser.unreader.take_head():
            return _DEFER
        if watches(conn.parser.unreader.buf.getvalue()):
            return self._answer_next(conn)
        if not (conn.placed or self._lane.enter(conn)):
            return _IN_LINE
        conn.placed = False
        try:
            again = self._answer_next(conn)
            while again and self._next_is_here(conn):
                again = self._answer_next(conn)
        finally:
            self._pass_on()
        return again

    def _answer_next(self, conn: Any) -> object:
        """In a thread: answer one request, whose head is there."""
        outcome = super().handle(conn)
        nothing = not outcome and conn.parser.unreader.gave_nothing
        conn.holds = conn.sock.is_held or (nothing and self._refusals.end_waits())
        if conn.holds:
            # Here, since it may wait for other processes, which the polling thread never does.
            conn.held_s = self._refusals.held_s(conn.is_calm)
        conn.answered_at = time.monotonic()
        return outcome

    def _pass_on(self) -> None:
        """Give a thread's place in the lane to the connection that waits longest."""
        conn = self._lane.leave()
        if conn is None:
            return
        conn.placed = True
        # A worker that stops takes nothing more.
        with contextlib.suppress(RuntimeError):
            super().enqueue_req(conn)

    def _next_is_here(self, conn: Any) -> bool:
        """Whether the next request comes so soon that its thread need not be given back."""
        if conn.holds or not self.alive or self._requests > self.cfg.threads // 2:
            return False
        poller = select.poll()
        poller.register(conn.sock, select.POLLIN)
        if not poller.poll(NEXT_REQUEST_MS) or not conn.parser.unreader.take_head():
            return False
        conn.arrived = time.monotonic()
        return True

    def handle_request(self, req: Any, conn: Any) -> bool:
        """In a thread: have the application answer; whether the connection can go on."""
        reader: CallerReader = conn.parser.unreader
        reader.begin_body()
        req.body.reader = BodyReader(req.body.reader, reader)
        reader.arrived = conn.arrived
        self._under_way[conn.sock] = (conn, req)
        try:
            with conn.sock.gathering(SEND_S):
                return bool(super().handle_request(req, conn))
        except TimeoutError as error:
            raise ConnectionResetError(errno.ECONNRESET, "the caller is too slow") from error
        finally:
            del self._under_way[conn.sock]

    def _answer(
        self,
        application: WSGIApplication,
        environ: WSGIEnvironment,
        start_response: StartResponse,
    ) -> Iterable[bytes]:
        """In a thread: the application's response; making it is not the caller's slowness."""
        conn, req = self._under_way[environ["gunicorn.socket"]]
        reader: CallerReader = conn.parser.unreader
        environ[ARRIVED] = reader.arrived
        with reader.answering(), self._departures.awaited(conn.sock) as departure:
            environ[LEAVING] = departure.call
            begin = partial(self._begin_response, conn, environ, start_response)
            answer = application(environ, begin)
            req.body.reader.expect_little()
            # To read trailers takes milliseconds, which no stranger is worth.
            worth_it = KNOWN in environ or "HTTP_TRANSFER_ENCODING" not in environ
            if not (worth_it and reader.take_rest(req.body)):
                # A thread would wait for it as long as the caller likes. So the response's head
                # says that the connection ends, and the polling thread drops what still comes.
                req.force_close()
                conn.still_sends = True
            return answer

    def _begin_response(
        self,
        conn: Any,
        environ: WSGIEnvironment,
        start_response: StartResponse,
        status: str,
        *rest: Any,
    ) -> Callable[[bytes], object]:
        """The head of a response; those to callers that ask on and on may be held."""
        if LOOKS in environ and status[:3] in _LOOKS:
            after_s = conn.arrived - conn.answered_at
            waits = self._refusals.look_waits(after_s, origin(conn.client))
            conn.is_calm = after_s >= JUST_NOW_S
        else:
            waits, conn.is_calm = self._refusals.waits(status, KNOWN in environ), False
        if waits:
            conn.sock.hold()
        return start_response(status, *rest)

    def finish_request(self, conn: Any, future: Future[object]) -> None:
        """In the polling thread again: wait for the head, the next request, or the end."""
        if _is_in_line(future):
            return
        self._requests -= 1
        if conn.holds:
            self._refusals.hold((conn, future), conn.held_s)
        else:
            self._go_on(conn, future)

    def _let_go(self) -> None:
        """Send the responses whose time has come, or all when the worker stops."""
        for conn, future in self._refusals.leaving(at_once=not self.alive):
            if conn.sock.let_go():
                conn.answered_at = time.monotonic()
                self._go_on(conn, future)
            else:
                self._drop(conn)

    def _go_on(self, conn: Any, future: Future[object]) -> None:
        """Have the connection wait for what its last request left it to."""
        if future.cancelled() or future.exception() or not (outcome := future.result()):
            self._linger(conn)
        elif outcome is _DEFER:
            wait_s = HEAD_S if self.alive else LINGER_S
            self._wait(conn, self.pending_conns, wait_s, self.on_pending_socket_readable)
        else:
            super().finish_request(conn, future)

    def on_pending_socket_readable(self, conn: Any, client: socket.socket) -> None:
        """More of a head has come."""
        if conn.parser.unreader.take_head():
            super().on_pending_socket_readable(conn, client)

    def murder_pending(self) -> None:
        """After each turn of the loop: end what took too long, or whose place others need."""
        super().murder_pending()
        self._loads.publish(self.nr_conns)
        if self._accepting:
            # This turn would have heard of a connection that waits.
            self._balancer.forget()
        self._end_lingering()
        self._let_go()
        self._go_on_dropping()
        self._departures.look()
        self._find_files()
        self._find_threads()

    def _end_lingering(self) -> None:
        now = time.monotonic()
        for queue in (self._lingering, self._discarding):
            while queue and queue[0].timeout <= now:
                self._drop(queue.popleft())

    def _find_files(self) -> None:
        """Close connections that nobody uses, where new ones need their files."""
        if self._no_files and not self._make_room():
            self._pause_accepting(NO_FILES_PAUSE_S)
        self._no_files = False
        while self.nr_conns >= self.worker_connections and self._make_room():
            pass

    def _find_threads(self) -> None:
        """Take threads from slow callers, the sooner the more requests wait for one."""
        excess = self._requests - self.cfg.threads
        now = time.monotonic()
        if excess > 0 and now >= self._next_check_at:
            allowed_s = SLOW_CALLER_S / (1 + excess / self.cfg.threads)
            self._next_check_at = now + allowed_s / 4
            self._free_threads(excess, allowed_s)

    def handle_error(self, req: object, client: socket.socket, addr: object, exc: object) -> None:
        """Answer a request that never reached the application as the application would."""
        error = refusal(exc)
        request_id = uuid.uuid4().hex
        if told := self._malformed.left_out():
            log.warning("malformed requests were left out of the log", extra={FIELDS: {"n": told}})
        if self._malformed.take():
            fields = {"status": error.status, "error": type(exc).__name__, "request_id": request_id}
            log.warning("request refused before the application saw it", extra={FIELDS: fields})
        self.wsgi.extensions["svc"].metrics.responded(error.status)
        whole = response(error, request_id)
        if isinstance(client, ResponseSocket) and self._refusals.waits(str(error.status)):
            client.hold_whole(whole)
            return
        # The response is short: a caller that does not take it in does not read at all.
        client.settimeout(SLOW_CALLER_S)
        try:
            client.sendall(whole)
        except OSError:
            log.debug("the caller went away")

    def _cap_keepalive(self, deadline: float) -> None:
        """Stopping, wait for heads as shortly as for further requests."""
        super()._cap_keepalive(deadline)
        for conn in (*self.pending_conns, *self._discarding):
            conn.timeout = min(conn.timeout, deadline)

    def _wait(
        self,
        conn: Any,
        queue: deque[Any],
        seconds: float,
        callback: Callable[[Any, socket.socket], None],
    ) -> None:
        """Have the poller look after a connection; those in one `queue` wait equally long."""
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + seconds
        queue.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(callback, conn))

    def _linger(self, conn: Any) -> None:
        """Wait for the caller to close: closing on unread bytes would reset the last response.

        RFC 9112, section 9.6.
        """
        queue = self._discarding if conn.still_sends else self._lingering
        wait_s = UNWANTED_S if conn.still_sends and self.alive else LINGER_S
        conn.unwanted = UNWANTED_BYTES
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            self._wait(conn, queue, wait_s, partial(self._on_unwanted, queue))
        except (OSError, ValueError):
            # The connection is closed already.
            self._drop(conn)

    def _on_unwanted(self, queue: deque[Any], conn: Any, client: socket.socket) -> None:
        """More has come of what nobody reads any more, on a connection that waits in `queue`."""
        size = _thrown_away(client)
        conn.unwanted -= size or 0
        if size == 0 or conn.unwanted <= 0:
            queue.remove(conn)
            self._drop(conn)
        elif self._unwanted.dropped(size or 0):
            self.poller.unregister(client)
            self._unwanted.keep((queue, conn))

    def _go_on_dropping(self) -> None:
        """Read further what nobody wants, of the connections that had to wait with it."""
        for queue, conn in self._unwanted.going_on():
            # It may have been closed meanwhile.
            with contextlib.suppress(ValueError, KeyError):
                self.poller.register(conn.sock, EVENT_READ, partial(self._on_unwanted, queue, conn))

    def _make_room(self) -> bool:
        """Close who is refused, or has waited longest with nothing to answer; False for nobody."""
        for conn, _ in self._refusals.leaving(at_once=True):
            conn.sock.let_go()
            self._drop(conn)
            return True
        unused = (self._lingering, self._discarding, self.pending_conns, self.keepalived_conns)
        for queue in unused:
            if queue:
                self._drop(queue.popleft())
                return True
        return False

    def _drop(self, conn: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()

    def _free_threads(self, wanted: int, allowed_s: float) -> None:
        """Take up to `wanted` threads from the callers that have been waited for longest."""
        readers = [conn.parser.unreader for conn, _ in list(self._under_way.values())]
        waited = {reader: reader.waited() for reader in readers}
        slow = [reader for reader in waited if waited[reader] > allowed_s]
        for reader in sorted(slow, key=waited.__getitem__, reverse=True)[:wanted]:
            reader.cut()


# What is dropped goes here, where the system does copy it.
_DROPPED = bytearray(256 * 1024)


def _thrown_away(client: socket.socket) -> int | None:
    """Read what has come and drop it: how many bytes that was, 0 at the end, None where nothing.

    A connection that was reset, or that the system has given up, has ended.
    """
    try:
        # Linux copies nothing then.
        return client.recv_into(_DROPPED, len(_DROPPED), socket.MSG_TRUNC)
    except BlockingIOError:
        return None
    except OSError:
        return 0


def _is_in_line(future: Future[object]) -> bool:
    return not future.cancelled() and not future.exception() and future.result() is _IN_LINE
