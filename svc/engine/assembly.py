"""Puts the engine together, for servers, for commands, and for challengers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from svc import limits
from svc.engine.ask import Asker
from svc.engine.cache import DecisionCache
from svc.engine.calls import CallPool, Calls
from svc.engine.debias import BothOrders, DebiasMemory
from svc.engine.decide import Engine, Journal
from svc.engine.plans import ModelResult
from svc.engine.replay import ReplayedCalls
from svc.engine.setup import KeyOf, Know, Promoted, nobody_promoted
from svc.engine.traced import TracedClient
from svc.flows import FlowPool, FlowsInTurn
from svc.learning import nothing_known
from svc.providers import (
    Admission,
    Client,
    Provider,
    ReplayClient,
    Replies,
    Router,
    TraitMemory,
    Traits,
    build_catalog,
    exposed_keys,
)
from svc.ratelimit import Buckets, HalfOf, InTurn, Pauses
from svc.settings import Settings
from svc.spending import PurseOf, nobody_pays
from svc.usage import Usage

log = logging.getLogger(__name__)

# Counts a call of a UTC day against the daily limit, see `Admission`.
Take = Callable[[str, int], bool]


class SharedCalls:
    """What processes that ask models share; made before they are forked."""

    def __init__(self) -> None:
        self.buckets = Buckets()
        self.pauses = Pauses()
        self.traits = TraitMemory()

    def close(self) -> None:
        """Release it in this process."""
        self.traits.close()
        self.pauses.close()
        self.buckets.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an engine gets from around it; each is an argument of `Engine` of the same name."""

    journal: Journal
    salt: bytes = field(repr=False)
    knowledge: Know = nothing_known
    project_key: KeyOf = lambda _project: None
    purse_of: PurseOf = nobody_pays
    promoted: Promoted = nobody_promoted


@dataclass(frozen=True, slots=True)
class Core:
    """The parts that make decisions, in a server and in a command alike."""

    catalog: Mapping[str, Provider]
    client: Client
    calls: Calls
    flows: FlowPool
    router: Router
    asker: Asker
    engine: Engine

    def close(self) -> None:
        """Stop in order: the client first, which cuts off the calls under way."""
        self.client.close()
        self.calls.close()
        self.flows.close()


def assemble(
    settings: Settings,
    shared: SharedCalls,
    around: Surroundings,
    *,
    take: Take,
    flow_threads: int,
    call_threads: int,
    usage: Usage | None = None,
    era: Callable[[str], str] = lambda _project: "",
    gives_way: bool = False,
    traced: bool = False,
    kind: type[Engine] = Engine,
) -> Core:
    """The engine and the parts it needs to ask models, for a server and for a command alike.

    `usage` and `era` go to the `Asker`. Who `gives_way` leaves half of each provider's rate to
    others. Where it is `traced`, calls go into the traces of their deadlines, and decisions where
    the `kind` of engine tells of them. Raises `SettingsError` for settings that cannot be used.
    """
    catalog = build_catalog(settings)
    client = Client(catalog, call_threads, traits=shared.traits)
    slots = HalfOf(shared.buckets) if gives_way else shared.buckets
    turns = None if gives_way else InTurn(shared.buckets)
    gate = Admission(catalog, settings.daily_limit, take, slots, turns=turns)
    asked = TracedClient(client) if traced else client
    calls = CallPool(asked, gate, call_threads, paused=shared.pauses.note)
    cache: DecisionCache[ModelResult] = DecisionCache(
        settings.cache_size, ModelResult.size, limits.CACHED_PROBABILITIES
    )
    asker = Asker(client, calls, cache, DebiasMemory(), usage, era)
    return _core(settings, catalog, client, calls, FlowPool(flow_threads), asker, around, kind)


def assemble_replay(
    settings: Settings, replies: Replies, known: Mapping[str, Traits], around: Surroundings
) -> Core:
    """The engine where replies of models come from `replies`, for decisions made in one thread.

    It learns nothing from one decision to the next, and remembers none: made again, a decision
    asks for the same replies. `known` are the traits of models, see `ReplayClient`. Raises
    `SettingsError`.
    """
    catalog = build_catalog(settings)
    client = ReplayClient(catalog, replies, known)
    calls, cache = ReplayedCalls(client), DecisionCache[ModelResult](0)
    asker = Asker(client, calls, cache, BothOrders())
    return _core(settings, catalog, client, calls, FlowsInTurn(), asker, around)


def warn_of_exposed_keys(settings: Settings, catalog: Mapping[str, Provider]) -> None:
    """Say in the log which keys of providers anybody on the way can read."""
    for name, variable in exposed_keys(settings, catalog):
        log.warning(
            "the key of provider %s, from %s, goes to another machine over plain http, where "
            "anybody on the way can read it: give it an https:// URL",
            name,
            variable,
        )


def _core(
    settings: Settings,
    catalog: Mapping[str, Provider],
    client: Client,
    calls: Calls,
    flows: FlowPool,
    asker: Asker,
    around: Surroundings,
    kind: type[Engine] = Engine,
) -> Core:
    router = Router(catalog, settings.model, client.list_models)
    engine = kind(
        *(router, asker, flows, around.journal, around.salt, settings.latest_config),
        *(around.knowledge, around.project_key, around.purse_of, around.promoted),
    )
    return Core(catalog, client, calls, flows, router, asker, engine)
