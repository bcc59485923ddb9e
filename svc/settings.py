"""The environment and the flags of `svc serve`, read once into one frozen `Settings`.

An empty variable counts as not set, and a flag wins over its variable. A value that is not allowed
stops the start with one line that names the variable or option.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import urlsplit

from svc import limits, processors
from svc.errors import SettingsError
from svc.pins import LATEST, NEWEST, PINS

# The least and the most that is allowed: decisions in the cache (with 0 it is off), MiB of a body,
# processes that answer requests, calls a day, and dollars per million tokens.
CACHE_SIZES = (0, 10_000_000)
BODY_MBS = (1, 1_024)
WORKERS = (1, 64)
DAILY_LIMITS = (1, 1_000_000_000)
PRICES = (0.0, 1_000_000.0)

# The value that asks for a worker for each processor, and the most workers that it starts: all of
# them write to one file, so that each further one adds less.
AUTO = "auto"
AUTO_WORKERS = 8

# The protocols of providers' servers.
KINDS = ("chat", "systemone", "decisions")

LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

_FLAGS = {
    "addr": "--addr",
    "model": "--model",
    "cache_size": "--cache-size",
    "db": "--db",
    "latest_config": "--latest-config",
    "no_auth": "--no-auth",
    "require_keys": "--require-keys",
    "max_body_mb": "--max-body-mb",
    "workers": "--workers",
}
# OpenTelemetry's variables for where traces are sent.
_COLLECTOR = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_PROVIDER = re.compile(
    r"SVC_PROVIDER_([A-Z0-9_]+)_(URL|KEY|RPM|TIMEOUT|PRICE|KIND|TOP_LOGPROBS|BATCH)"
)
_INTEGER = re.compile(r"[0-9]{1,15}")
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?|\.[0-9]{1,15}")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?")

# The characters that a URL or a header may contain, without blanks.
_VISIBLE = re.compile(r"[!-~]+")


def provider_variable(name: str, what: str) -> str:
    """The variable that sets `what` of the provider of this name, `URL` for example."""
    return f"SVC_PROVIDER_{name.upper()}_{what}"


@dataclass(frozen=True, slots=True)
class ProviderOverride:
    """The variables `SVC_PROVIDER_<NAME>_...` of one provider, None where one is not set.

    `rpm` is in calls a minute. `timeout_s` bounds one call. `price` is in dollars per million
    tokens, of input and of output. `kind` is one of `KINDS`. `top_logprobs` alternatives are
    requested at each position. `batch` says whether it has OpenAI's Batch API.
    """

    url: str | None = None
    key: str | None = field(default=None, repr=False)
    rpm: int | None = None
    timeout_s: float | None = None
    price: tuple[float, float] | None = None
    kind: str | None = None
    top_logprobs: int | None = None
    batch: bool | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is decided before the start; secrets are left out of its repr.

    `workers` are processes that answer requests. `provider_url`, `rpm` (calls a minute) and
    `daily_limit` (calls a UTC day) are the aggregator's. Batches at providers are looked after
    every `batch_poll_s` seconds. `traced` says that OpenTelemetry's variables ask for traces.
    `providers` are by lower-case name, and `api_keys` holds every variable that ends with
    `_API_KEY`.
    """

    host: str = "127.0.0.1"
    port: int = 7777
    model: str | None = None
    cache_size: int = limits.CACHE_SIZE
    db: str = "svc.db"
    latest_config: str = NEWEST
    no_auth: bool = False
    require_keys: bool = False
    max_body_mb: int = limits.BODY_MB
    workers: int = 1
    provider_url: str | None = None
    rpm: int | None = None
    daily_limit: int | None = None
    batch_poll_s: float = limits.BATCH_POLL_S
    traced: bool = False
    log: str = "text"
    log_level: str = "info"
    master_key: str | None = field(default=None, repr=False)
    providers: Mapping[str, ProviderOverride] = field(default_factory=dict)
    api_keys: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class _Value:
    """One value that is set, and the name of its variable or option."""

    name: str
    text: str

    def fail(self, allowed: str, secret: bool = False) -> NoReturn:
        shown = "" if secret else f" is {self.text[:100]!r}"
        raise SettingsError(f"{self.name}{shown}; allowed: {allowed}")

    def integer(self, low: int, high: int, or_else: str = "") -> int:
        number = int(self.text) if _INTEGER.fullmatch(self.text) else -1
        if not low <= number <= high:
            self.fail(f"a whole number from {low} to {high}{or_else}")
        return number

    def workers(self) -> int:
        if self.text.lower() == AUTO:
            return min(processors.usable(), AUTO_WORKERS)
        return self.integer(*WORKERS, or_else=f", or {AUTO} for one a processor")

    def seconds(self, low: float, high: float) -> float:
        number = _decimal(self.text)
        if not low <= number <= high:
            self.fail(f"seconds from {low:g} to {high:g}")
        return number

    def price(self) -> tuple[float, float]:
        parts = [_decimal(part.strip()) for part in self.text.split(",")]
        if len(parts) != 2 or not all(PRICES[0] <= part <= PRICES[1] for part in parts):
            self.fail(
                "<input>,<output> in dollars per million tokens, "
                f"each from {PRICES[0]:g} to {PRICES[1]:g}"
            )
        return parts[0], parts[1]

    def one_of(self, *allowed: str) -> str:
        if self.text not in allowed:
            self.fail(", ".join(allowed))
        return self.text

    def flag(self) -> bool:
        return self.lowered().one_of(*_TRUE, *_FALSE) in _TRUE

    def lowered(self) -> _Value:
        return _Value(self.name, self.text.lower())

    def line(self, most: int) -> str:
        text = self.text
        if len(text) > most or not text.isprintable() or text != text.strip():
            self.fail(f"at most {most} printable characters, without blanks at the ends")
        return self.text

    def secret(self) -> str:
        key = self.text.strip()
        if not _VISIBLE.fullmatch(key):
            self.fail("visible ASCII characters", secret=True)
        return key

    def url(self) -> str:
        """A base URL without a slash at its end; messages hide a URL that may contain a secret."""
        hidden = any(mark in self.text for mark in "@?#")
        try:
            parts = urlsplit(self.text)
            good = (
                not hidden
                and _VISIBLE.fullmatch(self.text) is not None
                and parts.scheme in ("http", "https")
                and _is_host(parts.hostname or "")
                and parts.port != 0
            )
        except ValueError:
            # The port or the IPv6 address is malformed.
            good = False
        if not good:
            self.fail(
                "an http:// or https:// URL with a host, without credentials, query or fragment",
                secret=hidden,
            )
        return self.text.rstrip("/")

    def address(self) -> tuple[str, int]:
        host, _, port = self.text.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not _is_host(host) or not _INTEGER.fullmatch(port) or int(port) > 65_535:
            self.fail("<host>:<port>, such as 127.0.0.1:7777 or [::1]:7777")
        return host, int(port)


class _FlagsAndEnvironment:
    """The flags, and behind them the environment."""

    def __init__(self, environ: Mapping[str, str], flags: Mapping[str, object]) -> None:
        unknown = flags.keys() - _FLAGS.keys()
        if unknown:
            raise TypeError(f"unknown flags: {', '.join(sorted(unknown))}")
        self._environ = environ
        self._flags = flags

    def get(self, variable: str, flag: str | None = None) -> _Value | None:
        if flag is not None and self._flags.get(flag) not in (None, ""):
            return _Value(_FLAGS[flag], str(self._flags[flag]))
        text = self._environ.get(variable, "")
        return _Value(variable, text) if text else None


def load(environ: Mapping[str, str], **flags: str | int | bool | None) -> Settings:
    """Read the settings once; `flags` are the options of `svc serve`, None where not given.

    Raises `SettingsError` for the first value that is out of range.
    """
    source = _FlagsAndEnvironment(environ, flags)
    given: dict[str, object] = {}
    if value := source.get("", "addr"):
        given["host"], given["port"] = value.address()
    if value := source.get("SVC_MODEL", "model"):
        given["model"] = value.line(limits.MODEL_ID_BYTES)
    if value := source.get("SVC_CACHE_SIZE", "cache_size"):
        given["cache_size"] = value.integer(*CACHE_SIZES)
    if value := source.get("SVC_DB", "db"):
        given["db"] = value.line(4_096)
    if value := source.get("SVC_LATEST_CONFIG", "latest_config"):
        pin = value.one_of(*PINS, LATEST)
        given["latest_config"] = NEWEST if pin == LATEST else pin
    if value := source.get("SVC_NO_AUTH", "no_auth"):
        given["no_auth"] = value.flag()
    if value := source.get("SVC_REQUIRE_KEYS", "require_keys"):
        given["require_keys"] = value.flag()
    if value := source.get("SVC_MAX_BODY_MB", "max_body_mb"):
        given["max_body_mb"] = value.integer(*BODY_MBS)
    if value := source.get("SVC_WORKERS", "workers"):
        given["workers"] = value.workers()
    given.update(_variables(source))
    given["traced"] = _traced(environ)
    given["providers"] = _overrides(environ)
    given["api_keys"] = {
        name: text for name, text in environ.items() if name.endswith("_API_KEY") and text
    }
    _check_access(given)
    return Settings(**given)  # type: ignore[arg-type]


def _check_access(given: Mapping[str, object]) -> None:
    if given.get("no_auth") and given.get("require_keys"):
        raise SettingsError(
            "--no-auth (SVC_NO_AUTH) and --require-keys (SVC_REQUIRE_KEYS) contradict each other; "
            "allowed: one of them"
        )


def _variables(source: _FlagsAndEnvironment) -> dict[str, object]:
    """The settings that have a variable and no option."""
    given: dict[str, object] = {}
    if value := source.get("SVC_PROVIDER_URL"):
        given["provider_url"] = value.url()
    if value := source.get("SVC_RPM"):
        given["rpm"] = value.integer(*limits.RPM)
    if value := source.get("SVC_DAILY_LIMIT"):
        given["daily_limit"] = value.integer(*DAILY_LIMITS)
    if value := source.get("SVC_BATCH_POLL_S"):
        given["batch_poll_s"] = value.seconds(*limits.BATCH_POLLS_S)
    if value := source.get("SVC_LOG"):
        given["log"] = value.lowered().one_of(*LOG_FORMATS)
    if value := source.get("SVC_LOG_LEVEL"):
        given["log_level"] = value.lowered().one_of(*LOG_LEVELS)
    if value := source.get("SVC_MASTER_KEY"):
        given["master_key"] = value.text
    return given


def _traced(environ: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry's variables name where traces go, and do not forbid them."""
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    forbidden = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    named = bool(exporter) or any(map(environ.get, _COLLECTOR))
    return named and exporter != "none" and not forbidden


def _overrides(environ: Mapping[str, str]) -> dict[str, ProviderOverride]:
    by_provider: dict[str, dict[str, object]] = {}
    for variable, text in sorted(environ.items()):
        if not text or not variable.startswith("SVC_PROVIDER_") or variable == "SVC_PROVIDER_URL":
            continue
        match = _PROVIDER.fullmatch(variable)
        if match is None:
            raise SettingsError(
                f"{variable}: no such setting; allowed: SVC_PROVIDER_URL, and "
                "SVC_PROVIDER_<NAME>_URL, _KEY, _KIND, _RPM, _TIMEOUT, _PRICE, _TOP_LOGPROBS "
                "or _BATCH"
            )
        name, value = match[1].lower(), _Value(variable, text)
        by_provider.setdefault(name, {}).update(_override(match[2], value))
    return {name: ProviderOverride(**given) for name, given in by_provider.items()}  # type: ignore[arg-type]


def _override(suffix: str, value: _Value) -> dict[str, object]:
    if suffix == "URL":
        return {"url": value.url()}
    if suffix == "KEY":
        return {"key": value.secret()}
    if suffix == "RPM":
        return {"rpm": value.integer(*limits.RPM)}
    if suffix == "TIMEOUT":
        return {"timeout_s": value.seconds(*limits.PROVIDER_TIMEOUT_S)}
    if suffix == "KIND":
        return {"kind": value.lowered().one_of(*KINDS)}
    if suffix == "TOP_LOGPROBS":
        return {"top_logprobs": value.integer(1, limits.TOP_LOGPROBS)}
    if suffix == "BATCH":
        return {"batch": value.flag()}
    return {"price": value.price()}


def _decimal(text: str) -> float:
    """A plain decimal number, else NaN, which lies in no range."""
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


def _is_host(text: str) -> bool:
    if ":" in text:
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            return False
        return True
    return len(text) <= 253 and _HOST.fullmatch(text) is not None
