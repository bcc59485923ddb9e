"""The providers that are configured: built in, on this machine, or named by the operator."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from svc import limits
from svc.errors import SettingsError
from svc.settings import ProviderOverride, Settings, provider_variable

AGGREGATOR = "openrouter"

# The kind of provider that writes text.
CHAT = "chat"


@dataclass(frozen=True, slots=True)
class BatchTerms:
    """What a provider's Batch API is: its protocol, and the most lines and bytes of one batch.

    A call costs `price` times what it costs by itself.
    """

    protocol: str = "openai"
    lines: int = limits.BATCH_LINES
    bytes: int = limits.BATCH_BYTES
    price: float = 0.5


@dataclass(frozen=True, slots=True)
class Provider:
    """One API that answers questions or completes chats, and how it is called.

    `url` is the part before /chat/completions or its like, without a slash at its end. `rpm` is
    in calls a minute, None without a limit. `price` is in dollars per million tokens, of input and
    of output. A provider is `local` where the URL's host is this machine, and `hosted` where it is
    built in and reached over the network, so that ids without a prefix may go to it. `top_logprobs`
    alternatives are requested at each position. `kind` is the protocol of its server, a key of
    `PROTOCOLS`. `extra` holds further fields of every body. `usual_models` are the provider's own
    ids, the most suitable first. `batch` is None where it has no Batch API that is known here.
    Calls cost `price_share` times their price.
    """

    name: str
    url: str
    key: str | None = field(default=None, repr=False)
    rpm: int | None = limits.PROVIDER_RPM
    timeout_s: float = limits.CALL_TIMEOUT_S
    price: tuple[float, float] | None = None
    local: bool = False
    aggregator: bool = False
    hosted: bool = False
    tokens_field: str = "max_tokens"
    top_logprobs: int = limits.TOP_LOGPROBS
    kind: str = CHAT
    extra: Mapping[str, Any] = field(default_factory=dict)
    usual_models: tuple[str, ...] = ()
    batch: BatchTerms | None = None
    price_share: float = 1.0

    @property
    def no_batches(self) -> str:
        """Why calls cannot be sent in batches, and what to set; empty where they can."""
        if self.batch is not None and self.kind == CHAT:
            return ""
        return (
            f"no Batch API of provider {self.name!r} is known; where it has OpenAI's, set "
            f"{provider_variable(self.name, 'BATCH')}=1"
        )

    def batched(self) -> Provider:
        """The same provider as it is for batches: at their price, and without a rate."""
        return replace(self, rpm=None, price_share=self.batch.price if self.batch else 1.0)


@dataclass(frozen=True, slots=True)
class _Hosted:
    """A built-in provider and the variable that usually holds its key."""

    variable: str
    provider: Provider


def _hosted(name: str, url: str, variable: str, *usual: str, **facts: Any) -> tuple[str, _Hosted]:
    return name, _Hosted(variable, Provider(name, url, hosted=True, usual_models=usual, **facts))


# Sources: the providers' own API descriptions, October 2026.
_AGGREGATOR = _Hosted(
    "OPENROUTER_API_KEY",
    Provider(
        AGGREGATOR,
        "https://openrouter.ai/api/v1",
        aggregator=True,
        tokens_field="max_completion_tokens",
    ),
)
_HOSTED = dict(
    (
        _hosted(
            "openai",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            "gpt-4.1-mini",
            "gpt-4o-mini",
            "gpt-6-luna",
            "gpt-5.4-mini",
            "gpt-5-mini",
            tokens_field="max_completion_tokens",
            batch=BatchTerms(),
        ),
        _hosted(
            "anthropic",
            "https://api.anthropic.com/v1",
            "ANTHROPIC_API_KEY",
            "claude-haiku-5-5",
            "claude-haiku-4-5",
            "claude-sonnet-5",
            "claude-sonnet-4-5",
        ),
        _hosted(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite",
            "gemini-flash-latest",
        ),
        _hosted(
            "groq",
            "https://api.groq.com/openai/v1",
            "GROQ_API_KEY",
            "llama-3.3-70b-versatile",
            "openai/gpt-oss-20b",
            "llama-3.1-8b-instant",
            batch=BatchTerms(bytes=100_000_000),
        ),
        _hosted(
            "mistral",
            "https://api.mistral.ai/v1",
            "MISTRAL_API_KEY",
            "mistral-small-latest",
            "mistral-medium-latest",
            batch=BatchTerms("mistral"),
        ),
        _hosted(
            "deepseek",
            "https://api.deepseek.com",
            "DEEPSEEK_API_KEY",
            "deepseek-chat",
            "deepseek-v4-flash",
            extra=MappingProxyType({"thinking": {"type": "disabled"}}),
        ),
        _hosted(
            "together",
            "https://api.together.xyz/v1",
            "TOGETHER_API_KEY",
            "meta-llama/Llama-3.3-70B-Instruct-Turbo",
            "openai/gpt-oss-20b",
        ),
        _hosted(
            "fireworks",
            "https://api.fireworks.ai/inference/v1",
            "FIREWORKS_API_KEY",
            "accounts/fireworks/models/llama-v3p3-70b-instruct",
            "accounts/fireworks/models/gpt-oss-20b",
            top_logprobs=5,
        ),
        _hosted(
            "xai",
            "https://api.x.ai/v1",
            "XAI_API_KEY",
            "grok-4-fast-non-reasoning",
            "grok-3-mini",
            top_logprobs=8,
        ),
        _hosted(
            "cerebras",
            "https://api.cerebras.ai/v1",
            "CEREBRAS_API_KEY",
            "llama-3.3-70b",
            "gpt-oss-120b",
            "llama3.1-8b",
        ),
    )
)
_LOCAL = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
}


def build_catalog(settings: Settings) -> Mapping[str, Provider]:
    """The configured providers by name: the aggregator, hosted, local, custom, in a fixed order.

    Raises `SettingsError` when a variable belongs to a provider that has no URL.
    """
    catalog: dict[str, Provider] = {}
    aggregator = _configured(_AGGREGATOR, settings, _aggregator_override(settings))
    if aggregator is not None:
        catalog[AGGREGATOR] = aggregator
    for name, hosted in _HOSTED.items():
        provider = _configured(hosted, settings, settings.providers.get(name))
        if provider is not None:
            catalog[name] = provider
    for name, url in _LOCAL.items():
        catalog[name] = _overridden(Provider(name, url), settings.providers.get(name))
    for name in sorted(settings.providers.keys() - {AGGREGATOR, *_HOSTED, *_LOCAL}):
        catalog[name] = _custom(name, settings.providers[name])
    return MappingProxyType(catalog)


def exposed_keys(settings: Settings, catalog: Mapping[str, Provider]) -> list[tuple[str, str]]:
    """Providers whose key would cross the network in the clear, each with the key's variable."""
    return [
        (name, _variable_of_key(name, settings))
        for name, provider in catalog.items()
        if provider.key and provider.url.startswith("http:") and not provider.local
    ]


def _variable_of_key(name: str, settings: Settings) -> str:
    override = settings.providers.get(name)
    if override is not None and override.key is not None:
        return provider_variable(name, "KEY")
    hosted = _AGGREGATOR if name == AGGREGATOR else _HOSTED[name]
    return hosted.variable


def how_to_configure(name: str) -> str:
    """Which variable to set so that a provider of this name is configured."""
    if name == AGGREGATOR:
        return f"set {_AGGREGATOR.variable}"
    if name in _HOSTED:
        return f"set {_HOSTED[name].variable}"
    if re.fullmatch(r"[a-z0-9_]+", name):
        return f"set {provider_variable(name, 'URL')}"
    return "a provider's name has only the characters a-z, 0-9 and _"


def is_local(url: str) -> bool:
    """Whether the URL's host is this machine by its name or address, without asking a resolver.

    Names below localhost are not: a resolver may be told to lead them to other machines.
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def _aggregator_override(settings: Settings) -> ProviderOverride | None:
    """`SVC_PROVIDER_URL` and `SVC_RPM`; the aggregator's variables by name win over them."""
    named = settings.providers.get(AGGREGATOR, ProviderOverride())
    override = replace(named, url=named.url or settings.provider_url, rpm=named.rpm or settings.rpm)
    return None if override == ProviderOverride() else override


def _configured(
    hosted: _Hosted, settings: Settings, override: ProviderOverride | None
) -> Provider | None:
    """A hosted provider with its key, or None while neither a key nor a URL was given."""
    key = _key(hosted.variable, settings)
    provider = _overridden(replace(hosted.provider, key=key), override)
    if provider.key is None and (override is None or override.url is None):
        return None
    return provider


def _key(variable: str, settings: Settings) -> str | None:
    key = settings.api_keys.get(variable, "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise SettingsError(f"{variable}; allowed: visible ASCII characters")
    return key or None


def _overridden(provider: Provider, override: ProviderOverride | None) -> Provider:
    """The provider as the operator's variables change it; a local URL has no default limit."""
    override = override or ProviderOverride()
    url = override.url or provider.url
    local = is_local(url)
    return replace(
        provider,
        url=url,
        local=local,
        key=override.key or provider.key,
        rpm=override.rpm or (None if local else provider.rpm),
        timeout_s=override.timeout_s or provider.timeout_s,
        price=override.price or provider.price,
        kind=override.kind or provider.kind,
        top_logprobs=override.top_logprobs or provider.top_logprobs,
        batch=_batch(provider, override.batch),
    )


def _batch(provider: Provider, wanted: bool | None) -> BatchTerms | None:
    if wanted is None:
        return provider.batch
    return (provider.batch or BatchTerms()) if wanted else None


def _custom(name: str, override: ProviderOverride) -> Provider:
    if override.url is None:
        raise SettingsError(
            f"{provider_variable(name, '...')}: no provider {name!r} is built in; "
            f"{provider_variable(name, 'URL')} must be set too"
        )
    return _overridden(Provider(name, override.url), override)
