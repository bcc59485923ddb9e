import pytest

from svc.errors import SettingsError
from svc.providers.batch_protocols import BATCH_PROTOCOLS
from svc.providers.catalog import CHAT, BatchTerms, Provider, build_catalog, is_local
from svc.providers.protocols import PROTOCOLS
from svc.settings import KINDS, load

LOCAL = ["ollama", "llamacpp", "vllm", "lmstudio"]


def catalog(**environ):
    return build_catalog(load(environ))


def test_without_any_key_only_the_local_servers_are_configured():
    providers = catalog()
    assert list(providers) == LOCAL
    assert all(p.local and p.key is None and p.rpm is None for p in providers.values())


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GEMINI_API_KEY", "gemini"),
        ("GROQ_API_KEY", "groq"),
        ("MISTRAL_API_KEY", "mistral"),
        ("DEEPSEEK_API_KEY", "deepseek"),
        ("TOGETHER_API_KEY", "together"),
        ("FIREWORKS_API_KEY", "fireworks"),
        ("XAI_API_KEY", "xai"),
        ("CEREBRAS_API_KEY", "cerebras"),
    ],
)
def test_a_hosted_provider_turns_on_with_its_key(variable, name):
    providers = catalog(**{variable: " k-1\n"})
    assert list(providers) == [name, *LOCAL]
    provider = providers[name]
    assert (provider.key, provider.rpm, provider.timeout_s) == ("k-1", 60, 60.0)
    assert provider.hosted and provider.usual_models
    assert not provider.local and not provider.aggregator
    assert "k-1" not in repr(provider)


def test_the_order_is_the_same_whatever_the_environments():
    keys = {"XAI_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}
    custom = {"SVC_PROVIDER_ZED_URL": "http://z", "SVC_PROVIDER_ABE_URL": "http://a"}
    expected = ["openrouter", "openai", "xai", *LOCAL, "abe", "zed"]
    assert list(catalog(**keys, **custom)) == expected
    assert list(catalog(**custom, **dict(reversed(keys.items())))) == expected


def test_the_aggregator_is_configured_by_its_key_or_by_its_url():
    by_key = catalog(OPENROUTER_API_KEY="k")["openrouter"]
    assert (by_key.url, by_key.key, by_key.aggregator) == (
        "https://openrouter.ai/api/v1",
        "k",
        True,
    )
    by_url = catalog(SVC_PROVIDER_URL="http://gateway/v1/")["openrouter"]
    assert (by_url.url, by_url.key, by_url.aggregator) == ("http://gateway/v1", None, True)
    assert "openrouter" not in catalog(SVC_RPM="5")


def test_svc_rpm_is_the_aggregators_only():
    providers = catalog(SVC_RPM="5", OPENROUTER_API_KEY="k", OPENAI_API_KEY="k")
    assert (providers["openrouter"].rpm, providers["openai"].rpm) == (5, 60)


def test_the_aggregators_variables_by_name_win_over_the_general_ones():
    provider = catalog(
        SVC_PROVIDER_URL="http://general",
        SVC_RPM="5",
        SVC_PROVIDER_OPENROUTER_URL="http://named",
        SVC_PROVIDER_OPENROUTER_RPM="6",
    )["openrouter"]
    assert (provider.url, provider.rpm) == ("http://named", 6)


def test_a_custom_provider_has_what_its_variables_say():
    provider = catalog(
        SVC_PROVIDER_MY_LLM_URL="https://llm.example/v1",
        SVC_PROVIDER_MY_LLM_KEY="k",
        SVC_PROVIDER_MY_LLM_RPM="9",
        SVC_PROVIDER_MY_LLM_TIMEOUT="5",
        SVC_PROVIDER_MY_LLM_PRICE="1,2",
        SVC_PROVIDER_MY_LLM_KIND="systemone",
        SVC_PROVIDER_MY_LLM_TOP_LOGPROBS="5",
    )["my_llm"]
    assert provider == Provider(
        "my_llm",
        "https://llm.example/v1",
        "k",
        rpm=9,
        timeout_s=5.0,
        price=(1.0, 2.0),
        kind="systemone",
        top_logprobs=5,
    )


def test_everything_completes_chats_unless_it_is_said_to_be_a_decision_server():
    configured = catalog(OPENAI_API_KEY="k", SVC_PROVIDER_MINE_URL="http://x")
    assert {provider.kind for provider in configured.values()} == {"chat"}
    assert catalog(OPENAI_API_KEY="k", SVC_PROVIDER_OPENAI_KIND="decisions")["openai"].kind == (
        "decisions"
    )


def test_there_is_a_protocol_for_every_kind():
    assert set(PROTOCOLS) == set(KINDS)
    assert CHAT in PROTOCOLS


def test_the_number_of_alternatives_of_a_built_in_provider_can_be_set():
    assert catalog(XAI_API_KEY="k")["xai"].top_logprobs == 8
    assert catalog(XAI_API_KEY="k", SVC_PROVIDER_XAI_TOP_LOGPROBS="3")["xai"].top_logprobs == 3


def test_variables_override_a_built_in_provider_and_its_key_wins():
    provider = catalog(
        OPENAI_API_KEY="usual", SVC_PROVIDER_OPENAI_KEY="own", SVC_PROVIDER_OPENAI_TIMEOUT="7"
    )["openai"]
    assert (provider.key, provider.timeout_s) == ("own", 7.0)
    assert provider.url == "https://api.openai.com/v1"


def test_a_hosted_provider_with_another_url_needs_no_key():
    provider = catalog(SVC_PROVIDER_OPENAI_URL="http://localhost:1/v1")["openai"]
    assert (provider.key, provider.local, provider.rpm) == (None, True, None)


def test_a_local_server_that_is_moved_elsewhere_is_local_no_more():
    provider = catalog(SVC_PROVIDER_OLLAMA_URL="http://gpu.example/v1")["ollama"]
    assert (provider.local, provider.rpm) == (False, 60)


def test_a_limit_of_its_own_holds_for_a_local_provider_too():
    assert catalog(SVC_PROVIDER_OLLAMA_RPM="3")["ollama"].rpm == 3


def test_some_built_in_providers_have_batches_and_a_variable_says_it_of_others():
    names = ("OPENAI", "GROQ", "MISTRAL", "TOGETHER", "FIREWORKS", "ANTHROPIC")
    built_in = catalog(**{f"{name}_API_KEY": "k" for name in names})
    batched = {name: one.batch.protocol for name, one in built_in.items() if one.batch}
    assert batched == {"openai": "openai", "groq": "openai", "mistral": "mistral"}
    assert set(batched.values()) <= set(BATCH_PROTOCOLS)
    chosen = catalog(
        OPENAI_API_KEY="k",
        SVC_PROVIDER_OPENAI_BATCH="0",
        SVC_PROVIDER_MINE_URL="http://x",
        SVC_PROVIDER_MINE_BATCH="1",
    )
    assert chosen["openai"].batch is None and chosen["mine"].batch == BatchTerms()


@pytest.mark.parametrize(
    "suffix", ["KEY", "RPM", "TIMEOUT", "PRICE", "KIND", "TOP_LOGPROBS", "BATCH"]
)
def test_variables_of_a_provider_without_a_url_stop_the_start(suffix):
    value = {"PRICE": "1,2", "KIND": "chat", "BATCH": "1"}.get(suffix, "5")
    with pytest.raises(SettingsError, match="SVC_PROVIDER_NOBODY_URL"):
        catalog(**{f"SVC_PROVIDER_NOBODY_{suffix}": value})


def test_a_key_that_no_header_can_carry_stops_the_start_without_being_shown():
    with pytest.raises(SettingsError, match="OPENAI_API_KEY") as error:
        catalog(OPENAI_API_KEY="hid\nden")
    assert "hid" not in error.value.message


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/v1",
        "http://LOCALHOST:80",
        "http://localhost.:80",
        "http://127.0.0.1:11434/v1",
        "https://127.9.9.9",
        "http://[::1]:8000/v1",
    ],
)
def test_these_urls_are_on_this_machine(url):
    assert is_local(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost.example",
        "http://model.localhost:8000/v1",
        "http://notlocalhost",
        "http://127.0.0.1.example",
        "http://10.0.0.1",
        "http://0.0.0.0",
        "http://127.1",
        "http://2130706433",
        "http://[::]",
        "http://[fe80::1]",
        "http://example/127.0.0.1",
    ],
)
def test_these_urls_are_not(url):
    assert not is_local(url)
