"""Model providers: which there are, how an id finds one, and one bounded HTTP call to it."""

from __future__ import annotations

from svc.providers.admission import Admission
from svc.providers.batch_protocols import WINDOW_HOURS, RemoteBatch, State
from svc.providers.batches import EXCHANGE_S, BatchClient
from svc.providers.bodies import JSON_OBJECT, JSON_SCHEMA, ChatCall
from svc.providers.catalog import (
    CHAT,
    BatchTerms,
    Provider,
    build_catalog,
    exposed_keys,
)
from svc.providers.client import Client
from svc.providers.estimates import charged_usd, most_usd, price_before
from svc.providers.failures import (
    TAKE_TOO_LONG,
    BadReply,
    BrokenReply,
    CallTimedOut,
    Cancelled,
    Cut,
    FormatRefused,
    Gone,
    KeyRefused,
    NoCredit,
    NoLogprobs,
    NotThisWay,
    Overlong,
    ParameterBounded,
    ParameterRefused,
    ProviderError,
    Resting,
    ServerTrouble,
    Throttled,
    Unanswerable,
    Unread,
    api_error_of,
)
from svc.providers.prices import TokenUsage, price_of, price_variable
from svc.providers.protocol import DecisionCall
from svc.providers.refusals import LIMITS
from svc.providers.replays import ReplayClient, Replies
from svc.providers.replies import Completion, Reply, Token
from svc.providers.routing import Router
from svc.providers.thought import shows_thought, without_thought
from svc.providers.traits import (
    JSON_WAYS,
    LABEL_WAYS,
    NO_CORRECTIONS,
    Corrections,
    Reason,
    Rung,
    TraitMemory,
    Traits,
    Way,
    as_text,
    asked_by,
    from_text,
)
from svc.providers.transport import Transport, trusted
from svc.providers.watchdog import Watch, Watchdog
from svc.wire import TooLong

__all__ = [
    "CHAT",
    "EXCHANGE_S",
    "JSON_OBJECT",
    "JSON_SCHEMA",
    "JSON_WAYS",
    "LABEL_WAYS",
    "LIMITS",
    "NO_CORRECTIONS",
    "TAKE_TOO_LONG",
    "WINDOW_HOURS",
    "Admission",
    "BadReply",
    "BatchClient",
    "BatchTerms",
    "BrokenReply",
    "CallTimedOut",
    "Cancelled",
    "ChatCall",
    "Client",
    "Completion",
    "Corrections",
    "Cut",
    "DecisionCall",
    "FormatRefused",
    "Gone",
    "KeyRefused",
    "NoCredit",
    "NoLogprobs",
    "NotThisWay",
    "Overlong",
    "ParameterBounded",
    "ParameterRefused",
    "Provider",
    "ProviderError",
    "Reason",
    "RemoteBatch",
    "ReplayClient",
    "Replies",
    "Reply",
    "Resting",
    "Router",
    "Rung",
    "ServerTrouble",
    "State",
    "Throttled",
    "Token",
    "TokenUsage",
    "TooLong",
    "TraitMemory",
    "Traits",
    "Transport",
    "Unanswerable",
    "Unread",
    "Watch",
    "Watchdog",
    "Way",
    "api_error_of",
    "as_text",
    "asked_by",
    "build_catalog",
    "charged_usd",
    "exposed_keys",
    "from_text",
    "most_usd",
    "price_before",
    "price_of",
    "price_variable",
    "shows_thought",
    "trusted",
    "without_thought",
]
