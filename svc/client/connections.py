"""Connections of the client: each request leaves in one piece, and each answer is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry, Timeout
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from svc.client.errors import NoAnswer
from svc.joined import Joined
from svc.phrases import address
from svc.wire import LongResponse, TooLong

# A machine that is there takes a connection sooner, also under load.
CONNECT_S = 10.0

# The most that is read of an answer; the longest that the service gives is a few megabytes.
MOST_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 64 * 1024

# A failure is raised as it comes, and no redirect is followed.
_ONCE = Retry(total=False)

_HEADERS = {"Content-Type": "application/json"}
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class _Joined(Joined):
    """A connection whose answers have no more lines and pieces than their length needs."""

    response_class = LongResponse


class _JoinedTLS(_Joined, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Joined


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _JoinedTLS


class Adapter(HTTPAdapter):
    """An adapter whose connections send head and body of a request together."""

    pools: Mapping[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _TLSPool}

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self.pools

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = self.pools
        return manager


class Answer(NamedTuple):
    """The status, the headers and the body of an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Way(NamedTuple):
    """The pool of connections to a service, the path of its root, and what each request says."""

    pool: HTTPConnectionPool
    root: str
    headers: dict[str, str]


class Connections:
    """The connections to one service, for any number of threads.

    What the environment says of proxies, authorities and passwords is found out once, by
    `requests`; an exchange is one of `urllib3`, which takes a fifth less of the processor.
    """

    def __init__(self, url: str, api_key: str | None, most: int, timeout_s: float) -> None:
        """`most` connections are kept; `timeout_s` bounds each wait for the service."""
        self._url, self._api_key = url, api_key
        # Not all of its methods are typed.
        self._adapter: Any = Adapter(pool_maxsize=most)
        self._timeout = Timeout(connect=min(CONNECT_S, timeout_s), read=timeout_s)

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        """Send a request once. Raises `NoAnswer` where it cannot be sent, or is not answered.

        `headers` are those of this request alone.
        """
        with _answering(self._url):
            pool, root, of_all = self._way
            found = pool.urlopen(
                method,
                root + path,
                body=body,
                headers={**of_all, **headers},
                retries=_ONCE,
                timeout=self._timeout,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
            )
            with closing(found):
                return Answer(found.status, found.headers, _read(found))

    def close(self) -> None:
        """Close all of them."""
        self._adapter.close()

    @cached_property
    def _way(self) -> _Way:
        with requests.Session() as session:
            # What stands on this machine is not reached through a proxy.
            session.trust_env = urlsplit(self._url).hostname not in _THIS_MACHINE
            headers = dict(_HEADERS)
            if self._api_key is not None:
                headers["Authorization"] = f"Bearer {self._api_key}"
                # Without this, requests would prefer a password from a netrc file.
                session.auth = _keep
            request = session.prepare_request(requests.Request("POST", self._url, headers))
            found = session.merge_environment_settings(self._url, {}, None, None, None)
        proxies, verify = found["proxies"], found["verify"]
        pool = self._adapter.get_connection_with_tls_context(request, verify, proxies)
        self._adapter.cert_verify(pool, request.url, verify, None)
        root = self._adapter.request_url(request, proxies).rstrip("/")
        # Each request says how long its own body is.
        of_all = {
            name: value for name, value in request.headers.items() if name != "Content-Length"
        }
        return _Way(pool, root, of_all)


def _read(response: BaseHTTPResponse) -> bytes:
    """The body of an answer; beyond `MOST_BYTES` nothing, which is no answer of the service."""
    body = bytearray()
    for piece in response.stream(_PIECE_BYTES):
        body += piece
        if len(body) > MOST_BYTES:
            return b""
    return bytes(body)


@contextmanager
def _answering(url: str) -> Iterator[None]:
    """Raises `NoAnswer` where a request cannot be sent, or is not answered."""
    try:
        yield
    except (HTTPError, OSError, ValueError, TooLong) as error:
        # The message of a malformed URL quotes it, and may hold its password.
        cause = None if isinstance(error, ValueError) else error
        raise NoAnswer(f"no answer from {address(url)} ({type(error).__name__})") from cause


def _keep(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Leave the request's headers as they are."""
    return request
