"""Whatever the environment and the flags say: settings, or one line that names what is wrong."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from svc.errors import SettingsError
from svc.providers.catalog import build_catalog
from svc.settings import load
from tests.fuzz.inputs import FUZZED, ODD

SECRET = "s3cret-value"
VARIABLES = (
    *("SVC_MODEL", "SVC_CACHE_SIZE", "SVC_DB", "SVC_LATEST_CONFIG", "SVC_NO_AUTH", "SVC_RPM"),
    *("SVC_MAX_BODY_MB", "SVC_WORKERS", "SVC_DAILY_LIMIT", "SVC_LOG", "SVC_BATCH_POLL_S"),
    *("SVC_LOG_LEVEL", "SVC_MASTER_KEY", "OPENROUTER_API_KEY", "OPENAI_API_KEY", "SVC_PROVIDER_"),
    *(
        f"SVC_PROVIDER_{name}_{suffix}"
        for name in ("A", "OPENAI")
        for suffix in ("RPM", "PRICE", "TIMEOUT", "KIND", "TOP_LOGPROBS", "BATCH")
    ),
)
URLS = ("SVC_PROVIDER_URL", "SVC_PROVIDER_A_URL", "SVC_PROVIDER_OPENAI_URL", "SVC_PROVIDER__URL")
FLAGS = ("addr", "model", "cache_size", "db", "latest_config", "max_body_mb", "workers")
URL = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "http:", "//", ""]),
    st.sampled_from(["h", "[::1]", "[", "::1", f"u:{SECRET}@h", "a b", "127.0.0.1", "é", ""]),
    st.sampled_from(["", ":80", ":0", ":65536", ":x", ":"]),
    st.sampled_from(["", "/v1", "/v1//", f"?k={SECRET}", "#f", "/\r\nx: y"]),
)
VALUES = st.one_of(
    ODD,
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["1,2", "1,", "nan,inf", "svc-1.0.0", "svc-latest", "json", "on", "٣", "1_0"]),
    st.sampled_from(["chat", "SystemOne", "decisions ", "5"]),
    st.sampled_from(["127.0.0.1:80", "[::1]:0", ":80", "h:-1", "[::1", "1:2:3"]),
)


@FUZZED
@given(
    variables=st.dictionaries(st.sampled_from(VARIABLES), VALUES, max_size=4),
    urls=st.dictionaries(st.sampled_from(URLS), URL | VALUES, max_size=2),
    key=st.sampled_from(["", SECRET, f" {SECRET}\n", f"{SECRET}\r\nx", f"{SECRET}é"]),
    flags=st.dictionaries(st.sampled_from(FLAGS), st.none() | VALUES, max_size=2),
)
def test_settings_are_within_range_or_refused_in_one_line(
    variables: dict[str, str], urls: dict[str, str], key: str, flags: dict[str, str | None]
) -> None:
    environ = {**variables, **urls, "SVC_PROVIDER_A_KEY": key}
    try:
        settings = load(environ, **flags)
        build_catalog(settings)
    except SettingsError as error:
        assert "\n" not in error.message and error.message.isprintable()
        assert SECRET not in error.message
        named = [*environ, *URLS, *(f"--{flag.replace('_', '-')}" for flag in flags)]
        assert any(name in error.message for name in named)
        return
    assert 0 <= settings.port <= 65_535 and 1 <= settings.workers <= 64
    for provider in settings.providers.values():
        prices = provider.price or (0.0, 0.0)
        assert all(math.isfinite(price) and price >= 0 for price in prices)
    assert SECRET not in repr(settings)
