"""The protocols by the name that `SVC_PROVIDER_<NAME>_KIND` has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.providers.chat import Chat
from svc.providers.decisions import DecisionsProtocol
from svc.providers.protocol import Protocol
from svc.providers.systemone import SystemOne

PROTOCOLS: Mapping[str, Protocol[Any]] = {
    "chat": Chat(),
    "systemone": SystemOne(),
    "decisions": DecisionsProtocol(),
}
