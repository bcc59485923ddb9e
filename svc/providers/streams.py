"""HTTP with bodies of any length, sent and read piece by piece, which ends in time as a whole."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import requests
from requests.utils import get_environ_proxies
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from svc import limits
from svc.errors import SvcError
from svc.providers.client import broken
from svc.providers.failures import CallTimedOut, ProviderError
from svc.providers.replies import Reply
from svc.providers.transport import Adapter, Session, Watched, trusted
from svc.providers.watchdog import Watchdog, current_watch
from svc.wire import LongResponse

# Seconds until a connection is there, and between two pieces of what is sent or comes.
CONNECT_S, PIECE_S = 10.0, 120.0

CHUNK_BYTES = 256 * 1024

_HEADERS = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}

# Connections that are kept open.
_CONNECTIONS = 4


class _Streamed(Watched):
    """A connection whose bodies leave piece by piece, and whose replies have any length."""

    response_class = LongResponse

    # The whole of an exchange may take long, but not to connect.
    def _open(self, kind: tuple[int, int, int], address: Any, timeout_s: float) -> socket.socket:
        return super()._open(kind, address, min(timeout_s, self.timeout or timeout_s))

    # What the other kind does besides is to put a body together in memory.
    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is None:
            self.connect()
        current_watch().follow(self.sock)
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
    ) -> Iterator[bytes]:
        """The body of a reply; the whole exchange ends within so many `seconds`.

        `refusal` gives the error for a reply that is one.
        """
        with self._watchdog.watching(seconds) as watch:
            try:
                yield from self._exchange(method, path, body, headers, refusal)
            except ProviderError:
                if not watch.ended:
                    raise
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
                if response.status_code >= 300:
                    data = response.raw.read(limits.REPLY_BYTES, decode_content=True)
                    raise refusal(Reply(response.status_code, response.headers, data))
                while chunk := response.raw.read(CHUNK_BYTES, decode_content=True):
                    yield chunk
        except (ProviderError, SvcError):
            raise
        except requests.Timeout:
            raise CallTimedOut("the call took too long") from None
        except Exception as error:  # noqa: BLE001 - whatever the peer makes of it
            raise broken(error) from None
