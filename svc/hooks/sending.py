"""One request to a receiver: to an address that was checked, and within its time in all.

Only the status of the answer is read. Redirects are not followed, cookies not kept, and proxies of
the environment not used, because they would connect to an address that nobody has checked.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from functools import cache
from http.client import HTTPConnection, HTTPException, RemoteDisconnected

from svc import limits
from svc.hooks.targets import Resolve, Target, addresses, resolved
from svc.meter import Meter, Spare, SpareOfPeer
from svc.phrases import reason
from svc.providers import Watch, Watchdog
from svc.wire import BoundedResponse, TooLong


class Undelivered(Exception):
    """There was no answer; the message says why in words that hold no part of the URL."""


class Resting(Undelivered):
    """Nothing was sent, since the attempts before took too much of a processor."""

    def __init__(self, wait_s: float) -> None:
        super().__init__("its connections took too much of a processor; it is asked again later")
        self.wait_s = wait_s


class Sender:
    """Sends bodies to targets."""

    def __init__(self, resolve: Resolve = resolved, seconds: float = limits.HOOK_ANSWER_S) -> None:
        """`seconds` is for everything from the look-up of the name to the answer.

        Raises `RuntimeError` where the system allows no thread that ends answers which drip.
        """
        self._resolve, self._seconds = resolve, seconds
        self._watchdog = Watchdog()
        self._watchdog.begin()
        # What attempts at a receiver may take of a processor together, by its host and port.
        self._receivers: dict[str, SpareOfPeer] = {}

    def post(
        self, target: Target, allow_private: bool, body: bytes, headers: Mapping[str, str]
    ) -> int:
        """The status of the receiver's answer. Raises `Undelivered` and `RefusedTarget`."""
        of_all = self._receivers.setdefault(target.authority, SpareOfPeer())
        if wait_s := of_all.wait_s():
            raise Resting(wait_s)
        give_up_at = time.monotonic() + self._seconds
        found = addresses(target, allow_private, self._resolve)
        if target.scheme == "https":
            # The authorities are read once, which is not the receiver's doing.
            _tls()
        left_s = give_up_at - time.monotonic()
        if left_s <= 0:  # The look-up of its name took all of it.
            raise Undelivered(self._late)
        of_all.begin()
        spare = Spare(limits.HOOK_PROCESSOR_S, of_all)
        meter = Meter(spare.use, spare.has_left, with_collections=False)
        with self._watchdog.watching(left_s, meter=meter) as watch:
            connection = _Connection(target, found, give_up_at, watch)
            try:
                connection.request("POST", target.path, body, {**headers, "Host": target.authority})
                status = connection.getresponse().status
                # A connection that was cut within the headers looks like their end.
                watch.left()
                return status
            except (OSError, HTTPException, ValueError, TooLong) as error:
                if watch.kept_busy:
                    raise Undelivered("its connection took too much of a processor") from None
                if time.monotonic() >= give_up_at:
                    raise Undelivered(self._late) from None
                raise Undelivered(_why(error)) from None
            finally:
                meter.pause()
                connection.close()

    @property
    def _late(self) -> str:
        return f"it did not answer within {self._seconds:g} s"


class _Connection(HTTPConnection):
    """A connection to the first of some addresses that takes one; TLS checks the target's name."""

    response_class = BoundedResponse

    def __init__(
        self, target: Target, found: Iterable[str], give_up_at: float, watch: Watch
    ) -> None:
        super().__init__(target.host, target.port)
        self._target, self._found, self._give_up_at = target, found, give_up_at
        self._watch = watch

    def connect(self) -> None:
        self.sock = self._connected()
        # Before the handshake, which reads for as long as anything comes.
        self._watch.hold(self.sock)
        self._watch.connected()
        if self._target.scheme == "https":
            self.sock.settimeout(_left(self._give_up_at))
            # It closes the socket below where this fails.
            self.sock = _tls().wrap_socket(self.sock, server_hostname=self._target.host)
        self.sock.settimeout(_left(self._give_up_at))

    def _connected(self) -> socket.socket:
        failure: OSError = TimeoutError()
        for address in self._found:
            try:
                place = (address, self._target.port)
                return socket.create_connection(place, _left(self._give_up_at))
            except OSError as error:
                failure = error
        raise failure


def _left(give_up_at: float) -> float:
    """The seconds that are left. Raises `TimeoutError` where none are."""
    left = give_up_at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


@cache
def _tls() -> ssl.SSLContext:
    """With the authorities of the system, which takes a while to read."""
    return ssl.create_default_context()


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return "it does not speak TLS as it should"
    if isinstance(error, RemoteDisconnected):
        return "it closed the connection without an answer"
    if isinstance(error, OSError):
        return f"it cannot be reached ({reason(error)})"
    return "its answer is no HTTP"
