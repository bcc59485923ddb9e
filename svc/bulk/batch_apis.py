"""The Batch APIs of providers, with the keys that a project asks them with."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from svc.bootstrap import Services
from svc.providers import EXCHANGE_S, BatchClient, Provider
from svc.store import ProjectKeys, UnreadableKey


class BatchApis:
    """Opens them, and closes them together."""

    def __init__(self, services: Services, exchange_s: float = EXCHANGE_S) -> None:
        """An exchange without a file may take so many seconds."""
        self._exchange_s = exchange_s
        self._catalog = services.core.catalog
        self._keys = ProjectKeys(services.database, services.settings.master_key)
        self._open: list[BatchClient] = []
        # The keys of projects that some were opened with, None where a project has none.
        self._opened_with: dict[str, str | None] = {}

    def of(self, providers: Iterable[Provider], project: str) -> dict[str, BatchClient]:
        """Those of the providers, by name. Raises `UnreadableKey` and `StorageError`."""
        return {provider.name: self._opened(provider, project) for provider in providers}

    def still_there(self, names: Iterable[str], project: str) -> dict[str, BatchClient]:
        """Those of the providers that are still configured. Raises `StorageError`."""
        apis: dict[str, BatchClient] = {}
        for name in names:
            with suppress(KeyError, UnreadableKey):
                apis[name] = self._opened(self._catalog[name], project)
        return apis

    def have_other_keys(self) -> bool:
        """Whether a project's key is not the one that they were opened with.

        Raises `UnreadableKey` and `StorageError`.
        """
        return any(self._keys.get(project) != key for project, key in self._opened_with.items())

    def close(self) -> None:
        """Cut off what is under way, from any thread, and close them."""
        for api in self._open:
            api.close()

    def _opened(self, provider: Provider, project: str) -> BatchClient:
        own = None
        if provider.aggregator:
            own = self._opened_with[project] = self._keys.get(project)
        provider = provider if own is None else replace(provider, key=own)
        self._open.append(BatchClient(provider, exchange_s=self._exchange_s))
        return self._open[-1]
