"""HTTP to one provider: pooled connections that a watchdog can cut off, and nothing else.

No cookies, no netrc, no redirects; proxies and the CA bundle are those of the environment at the
start, and a provider on this machine is never reached through a proxy.
"""

from __future__ import annotations

import os
import socket
import ssl
import zlib
from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.utils import (
    DEFAULT_CA_BUNDLE_PATH,
    get_environ_proxies,
    select_proxy,
)
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from svc import limits
from svc.errors import SettingsError
from svc.providers.replies import Reply
from svc.providers.watchdog import current_watch
from svc.sockets import EagerSocket

_ENCODINGS = {"gzip", "x-gzip", "deflate"}
_CHUNK = 65_536  # bytes


class TooLong(Exception):
    """The reply is larger than `limits.REPLY_BYTES`."""


class Encoded(Exception):
    """The reply is compressed in a way that was not asked for, or badly."""


class _Watched(HTTPConnection):
    """A connection whose socket is known to the watch of the call that uses it.

    A request leaves it in one piece: head and body one after the other would wake the provider,
    and this thread, twice.
    """

    _parts: list[bytes] | None = None  # of the request that is being put together

    def _new_conn(self) -> socket.socket:
        try:
            return self._dial()
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, f"no connection to {self.host} in time") from error
        except OSError as error:
            raise NewConnectionError(self, f"no connection to {self.host}: {error}") from error

    def _dial(self) -> socket.socket:
        """Connect to the first address that answers, each given its share of the time."""
        watch, failure = current_watch(), OSError("the name has no address")
        addresses = socket.getaddrinfo(self._dns_host, self.port, type=socket.SOCK_STREAM)
        for tried, (family, kind, protocol, _, address) in enumerate(addresses):
            try:
                share = watch.left() / (len(addresses) - tried)
                return self._open((family, kind, protocol), address, share)
            except OSError as error:
                failure = error
        raise failure

    def _open(self, kind: tuple[int, int, int], address: Any, timeout_s: float) -> socket.socket:
        sock = socket.socket(*kind)
        try:
            for option in self.socket_options or ():
                sock.setsockopt(*option)
            sock.settimeout(timeout_s)
            current_watch().hold(sock)
            sock.connect(address)
            sock.settimeout(self.timeout)
        except OSError:
            sock.close()
            raise
        return EagerSocket(sock)

    def connect(self) -> None:
        super().connect()
        current_watch().follow(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:  # a pooled connection
            current_watch().follow(self.sock)
        parts: list[bytes] = []
        self._parts = parts
        try:
            super().request(*args, **kwargs)
        finally:
            self._parts = None
        self.send(b"".join(parts))

    def send(self, data: Any) -> None:
        if self._parts is None:
            super().send(data)
        else:
            self._parts.append(data)


class _WatchedTLS(_Watched, HTTPSConnection):
    """The same over TLS; the handshake is watched through `_new_conn`."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Watched


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedTLS


class _Adapter(HTTPAdapter):
    """An adapter for one provider: there is one pool to find, and no cookies to keep."""

    _found: Any = None

    def __init__(self, pool_size: int, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._targets: dict[str | None, str] = {}  # of the few URLs that a provider has
        super().__init__(pool_connections=1, pool_maxsize=pool_size)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, ssl_context=self._tls)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs, ssl_context=self._tls)
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}
        return manager

    def get_connection_with_tls_context(
        self, request: requests.PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> Any:
        if self._found is None:
            url = request.url or ""
            proxy = select_proxy(url, proxies)
            manager = self.poolmanager
            if proxy:
                manager = self.proxy_manager_for(proxy if "://" in proxy else f"http://{proxy}")
            self._found = manager.connection_from_url(url)
        return self._found

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        if request.url not in self._targets:
            self._targets[request.url] = super().request_url(request, proxies)
        return self._targets[request.url]

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: the TLS context verifies, without loading the CA bundle for each connection."""

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        response = requests.Response()
        response.status_code = resp.status
        response.headers = resp.headers  # case-insensitive as it is
        response.raw = resp
        response.request = req
        response.url = req.url or ""
        return response


def trusted() -> ssl.SSLContext:
    """TLS that trusts the CA bundle of the environment, else the one that comes with requests.

    Raises `SettingsError` when the bundle that a variable names cannot be read.
    """
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        if path := os.environ.get(variable):
            break
    else:
        variable, path = "the CA bundle", DEFAULT_CA_BUNDLE_PATH
    try:
        if os.path.isdir(path):
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except OSError:  # ssl.SSLError is one
        raise SettingsError(
            f"{variable} is {path!r}; allowed: a file or folder of certificates"
        ) from None


class Transport:
    """Sends requests to one base URL."""

    def __init__(
        self,
        base_url: str,
        pool_size: int,
        tls: ssl.SSLContext | None = None,
        local: bool = False,
    ) -> None:
        """`pool_size` connections are kept open, one for each call that may run at once."""
        self._base_url = base_url
        self._adapter = _Adapter(pool_size, tls)
        self._proxies = {} if local else get_environ_proxies(base_url)

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: float,
    ) -> Reply:
        """One exchange, inside a watchdog's block; `timeout_s` bounds each socket operation.

        Raises what requests and urllib3 raise, `TooLong` and `Encoded`.
        """
        response = self._adapter.send(
            self._prepare(method, path, headers, body),
            stream=True,
            timeout=timeout_s,
            proxies=self._proxies,
        )
        try:
            data = _read(response.raw)
        finally:
            response.raw.close()  # returns the connection to the pool if it was read to its end
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        return Reply(response.status_code, response.headers, _decoded(data, encoding))

    def close(self) -> None:
        """Close the idle connections."""
        self._adapter.close()

    def _prepare(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> requests.PreparedRequest:
        """A prepared request by hand: `prepare` would parse the same URL at every call."""
        request = requests.PreparedRequest()
        request.method = method
        request.url = self._base_url + path
        request.headers = requests.structures.CaseInsensitiveDict(headers)
        if body is not None:
            request.headers["Content-Length"] = str(len(body))
            request.body = body
        return request


def _read(raw: Any) -> bytes:
    """The bytes of the reply as they came, up to the cap."""
    chunks, size = [], 0
    while chunk := raw.read(_CHUNK, decode_content=False):
        chunks.append(chunk)
        size += len(chunk)
        if size > limits.REPLY_BYTES:
            raise TooLong
        if raw.length_remaining == 0:
            break
    return b"".join(chunks)


def _decoded(data: bytes, encoding: str) -> bytes:
    """The reply unpacked, never beyond the cap however well it was packed."""
    if encoding in ("identity", "") or not data:
        return data
    if encoding not in _ENCODINGS:
        raise Encoded
    window = zlib.MAX_WBITS | 32  # gzip or zlib, as the data says
    try:
        unpacked = zlib.decompressobj(window).decompress(data, limits.REPLY_BYTES + 1)
    except zlib.error as error:
        raise Encoded from error
    if len(unpacked) > limits.REPLY_BYTES:
        raise TooLong
    return unpacked
