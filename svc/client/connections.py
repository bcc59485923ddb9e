"""Connections of the client: each request leaves in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from svc.joined import Joined


class _JoinedTLS(Joined, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = Joined


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
