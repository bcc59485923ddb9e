"""HTTP with bodies of any length, sent and read piece by piece, which ends in time as a whole."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from svc import __version__, limits
from svc.errors import SvcError
from svc.providers.client import broken
from svc.providers.failures import CallTimedOut, ProviderError
from svc.providers.replies import Reply
from svc.providers.transport import Watched
from svc.providers.watchdog import Watchdog, current_watch

# Seconds until a connection is there, and between two pieces of what is sent or comes.
CONNECT_S, PIECE_S = 10.0, 120.0

CHUNK_BYTES = 256 * 1024


class _Streamed(Watched):
    """A connection whose bodies leave piece by piece, and whose replies have any length."""

    response_class = HTTPConnection.response_class

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


_POOLS = {"http": _Pool, "https": _TLSPool}


class _Adapter(HTTPAdapter):
    """An adapter whose connections are watched; it is used inside a watchdog's block."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager


class Streams:
    """Exchanges with one base URL; all methods raise a `ProviderError`."""

    def __init__(self, url: str, key: str | None, local: bool) -> None:
        self._url = url
        self._watchdog = Watchdog()
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _Adapter())
        self._session.trust_env = False
        self._session.proxies = {} if local else get_environ_proxies(url)
        bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        self._session.verify = bundle or True
        self._session.headers.update({"User-Agent": f"svc/{__version__}"})
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
