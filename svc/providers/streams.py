"""HTTP with bodies of any length, sent and read piece by piece, which ends in time as a whole."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import requests
from requests.utils import get_environ_proxies
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from svc.errors import SvcError
from svc.meter import Meter, Spare, SpareOfPeer
from svc.providers.client import broken
from svc.providers.failures import CallTimedOut, KeptBusy, ProviderError, Resting
from svc.providers.replies import Reply
from svc.providers.transport import ENCODINGS, Adapter, Encoded, Session, Watched, trusted
from svc.providers.watchdog import Watchdog
from svc.wire import LongResponse, TooLong

# Seconds until a connection is there, and between two pieces of what is sent or comes.
CONNECT_S, PIECE_S = 10.0, 120.0

CHUNK_BYTES = 256 * 1024

# A packed body is hardly longer than what is in it, but for so many bytes. Else a server could send
# packed nothing for as long as an exchange may take.
_PACKED_BEYOND = 256 * 1024

# So much is read of a refusal; one that is longer is no JSON then, and has no words.
_REFUSAL_BYTES = 64 * 1024

# A packed body may have so many parts, and one more for each so many bytes that come out of it,
# because each takes time.
_PARTS, _PART_BYTES = 1_000, 4_096

_HEADERS = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}

# Connections that are kept open.
_CONNECTIONS = 4

# What an exchange may take of a processor until a piece comes, in seconds, besides what there is
# for each byte that has come. What is done with the pieces does not count.
SPARE_S = 0.25

# What all exchanges with a base URL may take together, of whichever job they are.
_PEERS: dict[str, SpareOfPeer] = {}


class _Streamed(Watched):
    """A connection whose bodies leave piece by piece, and whose replies have any length."""

    response_class = LongResponse

    # The whole of an exchange may take long, but not to connect.
    def _open(self, kind: tuple[int, int, int], address: Any, timeout_s: float) -> socket.socket:
        return super()._open(kind, address, min(timeout_s, self.timeout or timeout_s))

    # What the other kind does besides is to put a body together in memory.
    def transmit(self, *args: Any, **kwargs: Any) -> None:
        HTTPConnection.request(self, *args, **kwargs)


class _StreamedTLS(_Streamed, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Streamed


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _StreamedTLS


class _Adapter(Adapter):
    """An adapter with such connections; it is used inside a watchdog's block."""

    pools: Mapping[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _TLSPool}


class Streams:
    """Exchanges with one base URL; all methods raise a `ProviderError`."""

    def __init__(self, url: str, key: str | None, local: bool) -> None:
        self._url = url
        self._watchdog = Watchdog()
        tls = trusted() if url.startswith("https:") else None
        proxies = {} if local else get_environ_proxies(url)
        self._session = Session(_Adapter(_CONNECTIONS, tls), proxies, _HEADERS)
        if key is not None:
            self._session.headers["Authorization"] = f"Bearer {key}"

    def pieces(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str],
        seconds: float,
        refusal: Callable[[Reply], ProviderError],
        came: Callable[[int], object],
    ) -> Iterator[bytes]:
        """The body of a reply; the whole exchange ends within so many `seconds`.

        `refusal` gives the error for a reply that is one, and `came` is told how many bytes of the
        body have come, as they come: packed ones are fewer than what is in them.
        """
        of_all = _PEERS.setdefault(self._url, SpareOfPeer())
        if wait_s := of_all.wait_s():
            raise Resting("its exchanges took too much of a processor", wait_s)
        of_all.begin()
        spare = Spare(SPARE_S, of_all)
        meter = Meter(spare.use, spare.has_left, with_collections=False)

        def arrived(size: int) -> None:
            spare.came(size)
            came(size)

        with self._watchdog.watching(seconds, meter=meter) as watch:
            try:
                for piece in self._exchange(method, path, body, headers, refusal, arrived):
                    meter.pause()
                    yield piece
                    meter.go_on()
                    # A few bytes may have hundreds of megabytes in them.
                    if watch.ended:
                        break
            except ProviderError:
                if not watch.ended:
                    raise
            finally:
                meter.pause()
            if watch.kept_busy:
                raise KeptBusy("its connection took more of a processor than a reply may")
            if watch.ended:
                raise CallTimedOut("the call took too long")

    def close(self) -> None:
        """End what is under way, and close the connections."""
        self._watchdog.close()
        self._session.close()

    def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None,
        headers: Mapping[str, str],
        refusal: Callable[[Reply], ProviderError],
        came: Callable[[int], object],
    ) -> Iterator[bytes]:
        try:
            with self._session.request(
                method,
                self._url + path,
                data=body,
                headers=headers,
                timeout=(CONNECT_S, PIECE_S),
                allow_redirects=False,
                stream=True,
            ) as response:
                encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
                if response.status_code >= 300:
                    sent = response.raw.read(_REFUSAL_BYTES, decode_content=False)
                    first = next(_unpacked(iter([sent]), encoding), b"")
                    read = first[:_REFUSAL_BYTES]
                    raise refusal(Reply(response.status_code, response.headers, read))
                yield from _unpacked(_chunks(response.raw, came), encoding)
        except (ProviderError, SvcError):
            raise
        except requests.Timeout:
            raise CallTimedOut("the call took too long") from None
        except Exception as error:  # noqa: BLE001 - whatever the peer makes of it
            raise broken(error) from None


def _chunks(raw: Any, came: Callable[[int], object]) -> Iterator[bytes]:
    """The body as it comes."""
    while chunk := raw.read(CHUNK_BYTES, decode_content=False):
        came(len(chunk))
        yield chunk


def _unpacked(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """The body as it is meant, in pieces of `CHUNK_BYTES` at most.

    Raises `Encoded`, and `TooLong` where too little comes out of what comes.
    """
    if encoding in ("identity", ""):
        yield from chunks
        return
    if encoding not in ENCODINGS:
        raise Encoded
    unpacking, taken, given = _Unpacking(), 0, 0
    for chunk in chunks:
        taken += len(chunk)
        for piece in unpacking.pieces(chunk):
            given += len(piece)
            yield piece
        if taken > given + given // 8 + _PACKED_BEYOND:
            raise TooLong


class _Unpacking:
    """Unpacks gzip, of one part after the other, and zlib, as the data says."""

    def __init__(self) -> None:
        self._part = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._is_first = True
        self._parts_left = float(_PARTS)

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        """What is in the next bytes. Raises `Encoded`, and `TooLong` for too many parts."""
        while packed:
            try:
                piece = self._part.decompress(packed, CHUNK_BYTES)
            except zlib.error as error:
                if self._is_first:
                    raise Encoded from error
                # What follows a whole part and is none says nothing (as with gzip itself).
                return
            packed = self._part.unconsumed_tail
            if self._part.eof:
                packed = self._part.unused_data
                self._part, self._is_first = zlib.decompressobj(zlib.MAX_WBITS | 32), False
                self._parts_left -= 1
            self._parts_left += len(piece) / _PART_BYTES
            if self._parts_left < 0:
                raise TooLong
            if piece:
                yield piece
