from __future__ import annotations

import os
import pty
import re
import subprocess

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from tests.cli.processes import SVC, svc
from tests.e2e.serving import ROOT, WAIT_S, environment
from tests.scripted import Behaviour, Json, Raw, Reply, ScriptedProvider, completion, error

LABELS = [{"A": 0.9, "B": 0.06, "C": 0.02, "D": 0.01}, {"\n": 1.0}, {"yes": 0.9, "no": 0.1}]
USABLE = Reply(completion("A\nyes", LABELS))
VERBAL = Reply(
    completion('{"q1": {"A": 1, "B": 0, "C": 0, "D": 0}, "q2": {"yes": 0.9, "no": 0.1}}')
)
BEHAVIOURS: dict[str, Behaviour] = {
    "usable": USABLE,
    "gone": Reply(error("The model `gone` does not exist", code="model_not_found"), status=404),
    "locked": Reply(error("Incorrect API key provided: sk-secret"), status=401),
    "talks": Reply(completion("I would say it is A")),
    "broken": Raw(b"no HTTP"),
}


def behave(body: Json, n: int, headers: object) -> Behaviour:
    if body["model"] == "verbal":
        return VERBAL
    return BEHAVIOURS.get(body["model"], USABLE)


def table(output: str) -> dict[str, list[str]]:
    """The cells of each row by its model."""
    rows = [re.split(r"  +", line.strip()) for line in output.splitlines()[1:]]
    return {row[0]: row[1:] for row in rows}


def test_every_model_is_a_row_whatever_becomes_of_it() -> None:
    models = [f"@own/{name}" for name in ("usable", "verbal", "gone", "locked", "talks", "broken")]
    with ScriptedProvider(behave) as provider:
        ended = svc("spike", *models, "@none/m", SVC_PROVIDER_OWN_URL=provider.url)
    assert ended.returncode == 0, ended.stderr
    found = table(ended.stdout)
    assert list(found) == [*models, "@none/m"]
    assert found["@own/usable"][:4] == ["labels, one call", "99.5%", "99.0%", "no"]
    assert re.fullmatch(r"\d+ ms", found["@own/usable"][4])
    assert found["@own/usable"][5:] == ["2,000", "0.0000"]
    assert found["@own/verbal"][0] == "JSON by schema"
    assert found["@own/verbal"][-1] == "it gives no usable log-probabilities"
    assert {found[model][0] for model in [*models[2:], "@none/m"]} == {"nothing"}
    assert found["@own/gone"][-1].startswith("model '@own/gone': the model does not exist")
    assert found["@own/locked"][-1].endswith(
        "does not accept the key (check the provider's key variable)"
    )
    assert "secret" not in ended.stdout + ended.stderr


def test_the_usual_models_of_what_is_configured_are_checked() -> None:
    with ScriptedProvider(behave, models=["usable", "verbal"]) as provider:
        ended = svc("spike", SVC_PROVIDER_OWN_URL=provider.url)
        assert list(table(ended.stdout)) == ["@own/usable", "@own/verbal"]
        ended = svc("spike", SVC_PROVIDER_URL=provider.url, SVC_PROVIDER_OWN_URL=provider.url)
        listed = list(table(ended.stdout))
        assert {"openai/gpt-4.1-mini", "openai/gpt-4o-mini"} < set(listed) and len(listed) == 4


def test_costs_are_those_of_a_thousand_decisions() -> None:
    priced = Reply(completion("A\nyes", LABELS, cost=0.0021))
    with ScriptedProvider(lambda body, n, headers: priced) as provider:
        ended = svc("spike", "vendor/model", SVC_PROVIDER_URL=provider.url)
    assert table(ended.stdout)["vendor/model"][-2:] == ["2,000", "4.2000"]


def test_with_the_demonstration_model() -> None:
    ended = svc("spike", "--demo")
    assert ended.returncode == 0
    assert table(ended.stdout)["@demo/lexical"][0] == "labels, one call"


def test_when_no_model_answers_the_status_says_so() -> None:
    with ScriptedProvider(behave) as provider:
        ended = svc("spike", "@own/gone", "@own/locked", SVC_PROVIDER_OWN_URL=provider.url)
    assert ended.returncode == 1 and len(table(ended.stdout)) == 2 and ended.stderr == ""


def test_a_budget_that_does_not_suffice_is_a_reason() -> None:
    with ScriptedProvider(lambda body, n, headers: USABLE) as provider:
        ended = svc("spike", "a", SVC_PROVIDER_URL=provider.url, SVC_DAILY_LIMIT="2")
    found = table(ended.stdout)["a"]
    assert (ended.returncode, found[0]) == (0, "labels, one call")
    assert found[-1].startswith("5 of 6 texts had no answer: ")
    assert found[-1].endswith("the calls that SVC_DAILY_LIMIT allows one run are spent")


def test_texts_without_an_answer_are_counted_beside_the_way_that_works() -> None:
    def once(body: Json, n: int, headers: object) -> Behaviour:
        return Reply(error("no"), status=403) if "two-factor" in str(body) else USABLE

    with ScriptedProvider(once) as provider:
        ended = svc("spike", "@own/usable", SVC_PROVIDER_OWN_URL=provider.url)
    found = table(ended.stdout)["@own/usable"]
    assert (ended.returncode, found[0]) == (0, "labels, one call")
    assert found[-1].startswith("1 of 6 texts had no answer: model '@own/usable': ")


def test_nothing_to_check_is_said_on_one_line() -> None:
    ended = svc("spike", SVC_PROVIDER_OLLAMA_URL="http://127.0.0.1:9/v1")
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr.splitlines()[-1].startswith("Error: there is no model to check; name some")


@pytest.mark.parametrize(("settings", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_has_colours(settings: dict[str, str], coloured: bool) -> None:
    with ScriptedProvider(behave) as provider:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*SVC, "spike", "@own/usable", "@own/verbal", "@own/gone"],
            cwd=ROOT,
            env=environment(SVC_PROVIDER_OWN_URL=provider.url, COLUMNS="300", **settings),
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        process.communicate(timeout=WAIT_S)
        shown = os.read(ours, 65_536).decode()
        os.close(ours)
    rows = {line.split()[0]: line for line in shown.splitlines()}
    for model, colour in (("usable", "32"), ("verbal", "33"), ("gone", "31")):
        mark = f"\x1b[{colour}m" if coloured else ""
        assert f"{mark}@own/{model}" in rows


def test_help_shows_examples() -> None:
    shown = CliRunner().invoke(main, ["spike", "--help"])
    assert "Examples:" in shown.output and "svc spike --demo" in shown.output
