import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from svc.errors import InvalidRequest, ModelUnavailable
from svc.pins import PINS
from svc.providers.catalog import build_catalog
from svc.providers.failures import BadReply, KeyRefused, Refused, ServerTrouble, Throttled
from svc.providers.routing import LIST_AGAIN_S, Router
from svc.records import Model
from svc.settings import load

PIN = PINS["svc-1.0.0"]


def no_list(provider):
    raise AssertionError("the list of models must not be asked for")


def router(default_model=None, list_models=no_list, clock=time.monotonic, **environ):
    return Router(build_catalog(load(environ)), default_model, list_models, clock)


def test_a_prefixed_id_goes_to_the_named_provider_and_only_the_first_slash_splits():
    routes = router(OPENAI_API_KEY="k", OPENROUTER_API_KEY="k")
    assert routes.resolve("@openai/ft:a/b/c") == Model("@openai/ft:a/b/c", "openai", "ft:a/b/c")
    assert routes.resolve("@ollama/x").provider == "ollama"
    assert routes.resolve("@openrouter/a/b") == Model("@openrouter/a/b", "openrouter", "a/b")
    assert routes.provider(routes.resolve("@openai/x")).key == "k"


def test_a_plain_id_goes_to_the_aggregator_also_beside_others():
    keyed = router(OPENROUTER_API_KEY="k", OPENAI_API_KEY="k")
    assert keyed.resolve("openai/gpt-4o") == Model("openai/gpt-4o", "openrouter", "openai/gpt-4o")
    assert router(SVC_PROVIDER_URL="http://x").resolve("m").provider == "openrouter"


def test_a_plain_id_goes_to_the_single_hosted_provider_with_a_key():
    routes = router(GROQ_API_KEY="k", SVC_PROVIDER_MINE_URL="http://x", SVC_PROVIDER_MINE_KEY="k")
    assert routes.resolve("openai/gpt-oss") == Model("openai/gpt-oss", "groq", "openai/gpt-oss")


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"GROQ_API_KEY": "k", "OPENAI_API_KEY": "k"},
        {"SVC_PROVIDER_MINE_URL": "http://x"},
        {"SVC_PROVIDER_OPENAI_URL": "http://x"},
    ],
)
def test_a_plain_id_without_a_default_provider_fails_and_lists_the_configured(environ):
    with pytest.raises(InvalidRequest) as error:
        router(**environ).resolve("a/b")
    assert "configured providers: " in error.value.message
    assert "ollama, llamacpp, vllm, lmstudio" in error.value.message
    for variable in environ:
        assert variable.removeprefix("SVC_PROVIDER_").split("_")[0].lower() in error.value.message


@pytest.mark.parametrize(
    ("model_id", "told"),
    [
        ("@openai/x", "set OPENAI_API_KEY"),
        ("@openrouter/x", "set OPENROUTER_API_KEY"),
        ("@nobody/x", "set SVC_PROVIDER_NOBODY_URL"),
        ("@my_llm2/x", "set SVC_PROVIDER_MY_LLM2_URL"),
        ("@OLLAMA/x", "a provider's name has only the characters a-z, 0-9 and _"),
        ("@ollama /x", "a provider's name has only the characters a-z, 0-9 and _"),
        ("@my-llm/x", "a provider's name has only the characters a-z, 0-9 and _"),
    ],
)
def test_an_unconfigured_provider_fails_and_says_how_to_configure_it(model_id, told):
    with pytest.raises(InvalidRequest) as error:
        router().resolve(model_id)
    assert f"not configured: {told}; configured providers: ollama, " in error.value.message


@pytest.mark.parametrize(
    "model_id",
    ["", " ", "@", "@/", "@/x", "@ollama", "@ollama/", "x" * 301, "a\nb", "a\x00", "a\x7f"]
    + ["a\x85", " a", "a ", "\ud800", "@ollama/a\n"],
)
def test_an_odd_id_is_no_model(model_id):
    with pytest.raises(InvalidRequest, match=r"^model"):
        router(OPENROUTER_API_KEY="k").resolve(model_id)


@pytest.mark.parametrize("longest", ["x" * 300, "\u6a21" * 100, "\U0001f600" * 75])
def test_the_longest_id_is_taken(longest):
    """Counted in bytes: in letters of four it would take four times the room."""
    routes = router(OPENROUTER_API_KEY="k")
    assert routes.resolve(longest).name == longest
    with pytest.raises(InvalidRequest, match="at most 300 bytes in UTF-8"):
        routes.resolve(longest + "x")


def test_the_ids_of_a_request_have_a_length_together():
    """They stand in each of its decisions and labels."""
    routes = router(OPENROUTER_API_KEY="k")
    ids = [f"{n:02}" + "x" * 98 for n in range(40)]
    assert [model.id for model in routes.resolve_all(ids)] == ids
    with pytest.raises(InvalidRequest, match="have 4,001 bytes in UTF-8 together, at most 4,000"):
        routes.resolve_all([*ids, "y"])


@pytest.mark.parametrize(
    ("default_model", "named", "environ", "expected"),
    [
        ("@ollama/x", True, {"OPENROUTER_API_KEY": "k"}, PIN.model),
        ("@ollama/x", False, {"OPENROUTER_API_KEY": "k"}, "@ollama/x"),
        ("@ollama/x", True, {}, "@ollama/x"),
        ("@ollama/x", False, {}, "@ollama/x"),
        (None, False, {"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": "k"}, PIN.model),
        (None, True, {"SVC_PROVIDER_URL": "http://x"}, PIN.model),
    ],
)
def test_the_default_model(default_model, named, environ, expected):
    assert router(default_model, **environ).default(PIN, named) == expected


def test_without_model_and_aggregator_the_first_hosted_providers_usual_model_answers():
    asked = []

    def list_models(provider):
        asked.append(provider.name)
        return ["other", "gpt-4o-mini", "gpt-5-mini"]

    routes = router(None, list_models, XAI_API_KEY="k", OPENAI_API_KEY="k")
    assert [routes.default(PIN, named) for named in (True, False)] == ["@openai/gpt-4o-mini"] * 2
    assert asked == ["openai"]


@pytest.mark.parametrize(
    ("variable", "listed", "expected"),
    [
        (
            "ANTHROPIC_API_KEY",
            ["claude-haiku-4-5-20251001"],
            "@anthropic/claude-haiku-4-5-20251001",
        ),
        ("GEMINI_API_KEY", ["models/gemini-2.5-flash"], "@gemini/models/gemini-2.5-flash"),
        ("OPENAI_API_KEY", ["gpt-4o-mini-2024-07-18", "gpt-4o-mini"], "@openai/gpt-4o-mini"),
    ],
)
def test_a_dated_or_prefixed_entry_counts_as_listed(variable, listed, expected):
    routes = router(None, lambda provider: listed, **{variable: "k"})
    assert routes.default(PIN, False) == expected


@pytest.mark.parametrize("trouble", [ServerTrouble("down"), Throttled("slow")])
def test_a_list_that_may_come_later_gives_the_first_usual_model_and_is_asked_for_again(trouble):
    answers = iter([trouble, ["gpt-4o-mini"]])

    def list_models(provider):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    now = [0.0]
    routes = router(None, list_models, lambda: now[0], OPENAI_API_KEY="k")
    assert [routes.default(PIN, False) for _ in range(2)] == ["@openai/gpt-4.1-mini"] * 2
    now[0] = LIST_AGAIN_S
    assert [routes.default(PIN, False) for _ in range(2)] == ["@openai/gpt-4o-mini"] * 2


@pytest.mark.parametrize("trouble", [Refused("no"), KeyRefused("no"), BadReply("no list")])
def test_a_provider_that_lists_no_models_gives_its_first_usual_one_for_good(trouble):
    asked = []

    def list_models(provider):
        asked.append(provider.name)
        raise trouble

    routes = router(None, list_models, OPENAI_API_KEY="k")
    assert [routes.default(PIN, False) for _ in range(3)] == ["@openai/gpt-4.1-mini"] * 3
    assert asked == ["openai"]


def test_a_list_without_a_usual_model_is_model_unavailable_and_read_again_after_some_time():
    lists, now = [["gpt-4o-mini"], ["x"]], [0.0]
    routes = router(None, lambda _: lists.pop(), lambda: now[0], OPENAI_API_KEY="k")
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            routes.default(PIN, False)
    now[0] = LIST_AGAIN_S
    assert routes.default(PIN, False) == "@openai/gpt-4o-mini"


@pytest.mark.parametrize("environ", [{}, {"SVC_PROVIDER_MINE_URL": "http://x"}])
def test_local_and_custom_providers_are_never_chosen_by_themselves(environ):
    with pytest.raises(InvalidRequest, match="--model"):
        router(**environ).default(PIN, False)


def test_those_who_ask_at_the_same_time_share_one_list():
    asked, waiting = [], threading.Barrier(2)

    def list_models(provider):
        asked.append(provider)
        waiting.wait(30)
        return ["gpt-4.1-mini"]

    routes = router(None, list_models, OPENAI_API_KEY="k")
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(routes.default, PIN, False) for _ in range(8)]
        waiting.wait(30)
        assert {answer.result(30) for answer in answers} == {"@openai/gpt-4.1-mini"}
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("default_model", "environ", "words"),
    [
        (None, {}, "the request names none and the server has no default"),
        ("@nope/x", {"OPENAI_API_KEY": "k"}, "provider 'nope' is not configured"),
        ("plain", {}, "has no provider to go to"),
    ],
)
def test_a_default_that_cannot_work_is_told_before_any_request(default_model, environ, words):
    assert words in router(default_model, **environ).trouble(PIN)


@pytest.mark.parametrize(
    ("default_model", "environ"),
    [
        ("@openai/x", {"OPENAI_API_KEY": "k"}),
        (None, {"OPENROUTER_API_KEY": "k"}),
        (None, {"OPENAI_API_KEY": "k"}),  # its list of models will tell
    ],
)
def test_a_default_that_may_work_is_no_trouble(default_model, environ):
    assert router(default_model, **environ).trouble(PIN) == ""
