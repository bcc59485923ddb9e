import dataclasses

import pytest

from svc import processors
from svc.errors import SettingsError
from svc.settings import AUTO_WORKERS, ProviderOverride, Settings, load


def test_nothing_set_gives_the_contracts_defaults():
    settings = load({})
    assert settings == Settings()
    assert (settings.host, settings.port, settings.cache_size) == ("127.0.0.1", 7777, 1000)
    assert (settings.db, settings.latest_config) == ("svc.db", "svc-1.3.0")
    assert (settings.no_auth, settings.max_body_mb, settings.model) == (False, 16, None)


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        load({}).model = "m"  # type: ignore[misc]


def test_a_flag_wins_over_its_variable_and_an_empty_variable_is_not_set():
    environ = {"SVC_MODEL": "a/b", "SVC_CACHE_SIZE": "5", "SVC_DB": "", "SVC_NO_AUTH": "1"}
    settings = load(environ, model="c/d", cache_size=None, db=None, addr="[::1]:80")
    assert (settings.model, settings.cache_size, settings.db) == ("c/d", 5, "svc.db")
    assert (settings.host, settings.port, settings.no_auth) == ("::1", 80, True)


def test_every_variable_is_read():
    settings = load(
        {
            "SVC_MODEL": "@x/y",
            "SVC_DB": "/tmp/x.db",
            "SVC_CACHE_SIZE": "0",
            "SVC_LATEST_CONFIG": "svc-1.0.0",
            "SVC_NO_AUTH": "off",
            "SVC_REQUIRE_KEYS": "yes",
            "SVC_MAX_BODY_MB": "1",
            "SVC_PROVIDER_URL": "https://gateway.example/v1/",
            "SVC_RPM": "20",
            "SVC_DAILY_LIMIT": "50",
            "SVC_LOG": "JSON",
            "SVC_LOG_LEVEL": "WARNING",
            "SVC_MASTER_KEY": "m",
        }
    )
    assert settings == Settings(
        model="@x/y",
        db="/tmp/x.db",
        cache_size=0,
        latest_config="svc-1.0.0",
        require_keys=True,
        max_body_mb=1,
        provider_url="https://gateway.example/v1",
        rpm=20,
        daily_limit=50,
        log="json",
        log_level="warning",
        master_key="m",
    )


@pytest.mark.parametrize("text", ["auto", "AUTO"])
def test_auto_is_a_worker_for_each_processor_but_not_too_many(text):
    expected = min(processors.usable(), AUTO_WORKERS)
    assert load({"SVC_WORKERS": text}).workers == expected
    assert load({"SVC_WORKERS": "7"}, workers=text).workers == expected


def test_other_words_for_a_number_of_workers_are_refused_with_what_is_allowed():
    with pytest.raises(SettingsError) as error:
        load({"SVC_WORKERS": "automatic"})
    assert "a whole number from 1 to 64, or auto" in error.value.message


def test_a_provider_is_described_by_its_eight_variables():
    settings = load(
        {
            "SVC_PROVIDER_MY_LLM_URL": "http://[::1]:9000/v1/",
            "SVC_PROVIDER_MY_LLM_KEY": " k-1\n",
            "SVC_PROVIDER_MY_LLM_RPM": "7",
            "SVC_PROVIDER_MY_LLM_TIMEOUT": "2.5",
            "SVC_PROVIDER_MY_LLM_PRICE": ".15, 0.6",
            "SVC_PROVIDER_MY_LLM_KIND": "Decisions",
            "SVC_PROVIDER_MY_LLM_TOP_LOGPROBS": "5",
            "SVC_PROVIDER_MY_LLM_BATCH": "yes",
            "SVC_PROVIDER_OTHER_URL": "",
        }
    )
    given = ("http://[::1]:9000/v1", "k-1", 7, 2.5, (0.15, 0.6), "decisions", 5, True)
    assert settings.providers == {"my_llm": ProviderOverride(*given)}


def test_batches_are_looked_after_every_half_minute_unless_a_variable_says_otherwise():
    assert load({}).batch_poll_s == 30
    assert load({"SVC_BATCH_POLL_S": "2.5"}).batch_poll_s == 2.5


@pytest.mark.parametrize("kind", ["chat", "systemone", "decisions"])
def test_a_provider_speaks_one_of_three_protocols(kind):
    assert load({"SVC_PROVIDER_X_KIND": kind}).providers["x"].kind == kind


def test_a_wrong_kind_is_refused_with_those_that_there_are():
    with pytest.raises(SettingsError) as error:
        load({"SVC_PROVIDER_X_KIND": "completions"})
    for words in ("SVC_PROVIDER_X_KIND", "chat", "systemone", "decisions"):
        assert words in error.value.message


@pytest.mark.parametrize("suffix", ["FOO", "KINDS", "LOGPROBS", "TOP_LOGPROB", ""])
def test_an_unknown_variable_of_a_provider_is_refused_with_those_that_there_are(suffix):
    with pytest.raises(SettingsError) as error:
        load({f"SVC_PROVIDER_X_{suffix}": "1"})
    names = ("_URL", "_KEY", "_KIND", "_RPM", "_TIMEOUT", "_PRICE", "_TOP_LOGPROBS", "_BATCH")
    for name in names:
        assert name in error.value.message


def test_no_secret_shows_in_the_repr():
    environ = {
        "SVC_MASTER_KEY": "hidden-1",
        "OPENAI_API_KEY": "hidden-2",
        "SVC_PROVIDER_X_URL": "http://x",
        "SVC_PROVIDER_X_KEY": "hidden-3",
    }
    settings = load(environ)
    assert settings.api_keys["OPENAI_API_KEY"] == "hidden-2"
    assert "hidden" not in repr(settings)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("SVC_RPM", value) for value in ("0", "-1", "1.5", "1e3", "1_000", "٣", "nan", "9" * 99)),
        *(("SVC_CACHE_SIZE", value) for value in ("-1", "x", " 5", "+5")),
        *(("SVC_MAX_BODY_MB", value) for value in ("0", "inf", "2000")),
        *(("SVC_DAILY_LIMIT", value) for value in ("0", "1e999")),
        *(("SVC_PROVIDER_X_RPM", value) for value in ("0", "1000001")),
        *(("SVC_PROVIDER_X_TOP_LOGPROBS", value) for value in ("0", "21", "-1", "1.5", "x")),
        *(("SVC_PROVIDER_X_BATCH", value) for value in ("2", "half", "openai")),
        *(("SVC_BATCH_POLL_S", value) for value in ("0", "3601", "soon", "-1")),
        *(("SVC_PROVIDER_X_KIND", value) for value in ("openai", "chat completions", "0")),
        *(
            ("SVC_PROVIDER_X_TIMEOUT", value)
            for value in ("0.9", "601", "nan", "inf", "1e2", "1_0", "٣", "-5", ".")
        ),
        *(
            ("SVC_PROVIDER_X_PRICE", value)
            for value in ("1", "1,2,3", "1,", "-1,2", "nan,1", "1,inf", "1;2", "1e999,1")
        ),
        *(
            (variable, value)
            for variable in ("SVC_PROVIDER_URL", "SVC_PROVIDER_X_URL")
            for value in (
                "localhost:8000",
                "ftp://x/v1",
                "http://",
                "http:///v1",
                "http://x:port/v1",
                "http://x:99999/v1",
                "http://[::1/v1",
                "http://[zz]/v1",
                "http://a b/v1",
                "http://x/v 1",
                "http://ex ample",
                "http://exämple/v1",
                "http://x\n/v1",
                "http://-x/",
                "//x/v1",
            )
        ),
        ("SVC_LOG", "xml"),
        ("SVC_LOG_LEVEL", "loud"),
        ("SVC_NO_AUTH", "maybe"),
        ("SVC_LATEST_CONFIG", "svc-9.9.9"),
        ("SVC_MODEL", "a\nb"),
        ("SVC_MODEL", "x" * 301),
    ],
)
def test_a_bad_value_names_the_variable_the_value_and_what_is_allowed(variable, value):
    with pytest.raises(SettingsError) as error:
        load({variable: value})
    assert error.value.message.startswith(variable)
    assert repr(value[:100]) in error.value.message
    assert "; allowed: " in error.value.message
    assert "\n" not in error.value.message


@pytest.mark.parametrize(
    "url", ["http://user:hidden@x/v1", "http://x/v1?key=hidden", "http://x/v1#hidden", "u:hidden@x"]
)
def test_a_url_that_may_hold_a_secret_is_refused_without_being_shown(url):
    with pytest.raises(SettingsError) as error:
        load({"SVC_PROVIDER_X_URL": url})
    assert "SVC_PROVIDER_X_URL" in error.value.message
    assert "hidden" not in error.value.message


def test_a_bad_key_is_refused_without_being_shown():
    with pytest.raises(SettingsError) as error:
        load({"SVC_PROVIDER_X_KEY": "hid\nden"})
    assert "SVC_PROVIDER_X_KEY" in error.value.message
    assert "hid" not in error.value.message


@pytest.mark.parametrize(
    "variable",
    ["SVC_PROVIDER_FOO_TIMEOUTS", "SVC_PROVIDER_KEY", "SVC_PROVIDER_foo_URL", "SVC_PROVIDER__URL"],
)
def test_an_unknown_provider_variable_is_refused(variable):
    with pytest.raises(SettingsError, match=f"^{variable}: no such setting"):
        load({variable: "x"})


@pytest.mark.parametrize(
    ("flag", "value", "option"),
    [
        ("addr", "7777", "--addr"),
        ("addr", ":7777", "--addr"),
        ("addr", "127.0.0.1:65536", "--addr"),
        ("addr", "127.0.0.1:-1", "--addr"),
        ("cache_size", -1, "--cache-size"),
        ("max_body_mb", 0, "--max-body-mb"),
        ("latest_config", "newest", "--latest-config"),
    ],
)
def test_a_bad_flag_is_named_as_the_option(flag, value, option):
    with pytest.raises(SettingsError, match=f"^{option} is "):
        load({}, **{flag: value})


def test_svc_latest_stands_for_the_newest_config():
    assert load({}, latest_config="svc-latest").latest_config == "svc-1.3.0"


def test_keys_cannot_be_required_and_waived():
    with pytest.raises(SettingsError, match="contradict each other"):
        load({"SVC_NO_AUTH": "1"}, require_keys=True)


@pytest.mark.parametrize(
    ("environ", "traced"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "svc", "OTEL_TRACES_SAMPLER": "always_on"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": " None ", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, False),
        ({"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, False),
        ({"OTEL_SDK_DISABLED": "false", "OTEL_TRACES_EXPORTER": "otlp"}, True),
    ],
)
def test_traces_are_on_where_a_variable_says_where_they_go(environ, traced):
    assert load(environ).traced is traced
