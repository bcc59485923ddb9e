"""Build every service from settings, and stop them in order."""

from __future__ import annotations

from dataclasses import dataclass

from svc import limits
from svc.engine.ask import Asker
from svc.engine.calls import CallPool
from svc.engine.decide import Engine
from svc.providers.admission import Admission
from svc.providers.catalog import build_catalog
from svc.providers.client import Client
from svc.providers.quirks import Quirks
from svc.providers.routing import Router
from svc.settings import Settings
from svc.store.budget import CallBudget
from svc.store.database import Database
from svc.store.decisions import Decisions


@dataclass(frozen=True, slots=True)
class Services:
    """What the application works with; made in the process that serves, after the fork."""

    settings: Settings
    database: Database
    decisions: Decisions
    engine: Engine
    calls: CallPool
    client: Client

    def close(self) -> None:
        """Stop in order: no new calls, then the connections, then the writer with its queue."""
        self.client.close()
        self.calls.close()
        self.database.close()


def build(settings: Settings) -> Services:
    """Start what `settings` ask for. Raises `SettingsError` for a database that cannot be used."""
    threads = limits.REQUEST_THREADS * limits.CALLS_PER_REQUEST_THREAD
    catalog = build_catalog(settings)
    quirks = Quirks()
    database = Database.open(settings.db)
    client = Client(quirks, pool_size=threads)
    gate = Admission(catalog, settings.daily_limit, CallBudget(database).take)
    calls = CallPool(client, gate, threads)
    router = Router(catalog, settings.model, client.list_models)
    decisions = Decisions(database)
    engine = Engine(
        router, Asker(calls, quirks), decisions, database.salt, settings.latest_config
    )
    return Services(settings, database, decisions, engine, calls, client)
