from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from tests.cli.processes import MODEL, YES, svc
from tests.evals.samples import LATE, TEAM, rows, write_set
from tests.preferring import PreferringModel
from tests.scripted import Behaviour, Handler, Json, Reply, ScriptedProvider, always, completion
from tests.web.models import replying

NO = Reply(completion("no", [{"no": 0.9, "yes": 0.1}]))
FIRST = Reply(completion("A", [{"A": 0.9, "B": 0.05, "C": 0.05}]))
REFUSAL = Reply({"error": {"message": "no"}}, status=400)


def understanding(body: Json, n: int, headers: object) -> Behaviour:
    """A model that says yes, and notices when a question is denied."""
    return NO if "right answer to this question" in str(body["messages"]) else YES


def probe(handler: Handler, *arguments: str | Path) -> tuple[int, str, str, int]:
    """Status, both outputs, and how many calls were made."""
    with ScriptedProvider(handler) as provider:
        ended = svc("probe", "--model", MODEL, *arguments, SVC_PROVIDER_OWN_URL=provider.url)
        return ended.returncode, ended.stdout, ended.stderr, len(provider.bodies)


def changes(output: str, key: str) -> dict[str, Any]:
    return {one["change"]: one for one in json.loads(output)["questions"][key]}


@pytest.fixture
def late(tmp_path: Path) -> Path:
    return write_set(tmp_path, "late", LATE, rows(3))


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return write_set(tmp_path, "team", TEAM, [{"state": "my payments", "label": "billing"}] * 2)


def test_a_model_that_understands_a_denial_does_not_flip(late: Path) -> None:
    status, output, errors, calls = probe(understanding, "--json", late)
    assert status == 0 and calls == 4 * 3
    assert errors.splitlines()[0] == (
        f"{late}: 1 question in 4 ways, 3 states; "
        "at most 24 model calls, besides repeats of those that fail"
    )
    found = changes(output, "late")
    assert found["polarity"]["flips"] == [] and found["polarity"]["agreement"] == 1
    assert found["polarity"]["max_spread"] == pytest.approx(0, abs=1e-6)
    assert (found["wording"]["compared"], found["wording"]["flips"]) == (6, [])


def test_a_model_that_always_says_yes_flips_with_the_polarity(late: Path) -> None:
    _, output, _, _ = probe(always(YES), "--json", late)
    polarity = changes(output, "late")["polarity"]
    assert polarity["agreement"] == 0 and len(polarity["flips"]) == 3
    assert polarity["mean_spread"] == pytest.approx(0.8)


def test_a_model_that_always_picks_the_first_flips_with_the_order(team: Path) -> None:
    def behave(body: Json, n: int, headers: object) -> Behaviour:
        return YES if "Is this the right answer" in str(body["messages"]) else FIRST

    _, output, _, calls = probe(behave, "--json", team)
    found = changes(output, "team")
    assert calls == (1 + 2 + 2 + 1) * 2
    assert found["option order"]["agreement"] == 0 and found["wording"]["agreement"] == 1
    assert found["option order"]["flips"][0]["instead"] == "technical"
    assert found["yes/no twins"]["compared"] == 2


def test_a_model_that_reads_the_options_does_not_flip_with_the_order(team: Path) -> None:
    model = PreferringModel({"billing": 5.0})
    _, output, _, _ = probe(replying(model), "--json", team)
    order = changes(output, "team")["option order"]
    assert order["flips"] == [] and order["max_spread"] == pytest.approx(0, abs=1e-6)


def test_the_table_shows_a_row_for_each_change_and_the_widest_flips(late: Path) -> None:
    status, output, _, _ = probe(always(YES), late)
    assert status == 0
    _, table, flips = output.split("\n\n")
    lines = [re.split(r"  +", line.strip()) for line in table.splitlines()]
    assert lines[0][:4] == ["question", "change", "compared", "flips"]
    assert lines[1] == ["late", "polarity", "3", "3", "0.0%", "0.800", "0.800", "0"]
    assert flips.splitlines()[0] == (
        "late, input 1: true as it stands, false by denied (spread 0.800)"
    )


def test_a_dry_run_says_what_it_takes_and_asks_nothing(late: Path) -> None:
    status, output, _, calls = probe(always(YES), "--dry-run", "--rows", "2", late)
    assert (status, calls) == (0, 0)
    assert output == (
        f"{late}: 1 question in 4 ways, 2 states; "
        "at most 16 model calls, besides repeats of those that fail\n"
    )


def test_many_calls_have_to_be_agreed_to_before_the_first(tmp_path: Path) -> None:
    path = write_set(tmp_path, "late", LATE, rows(26))
    status, _, errors, calls = probe(always(YES), "--rows", "26", path)
    assert (status, calls) == (1, 0)
    assert "208 model calls are more than 200; --yes makes them, --rows takes fewer" in errors
    assert probe(always(YES), "--rows", "26", "--yes", path)[3] == 4 * 26


def test_no_more_calls_are_made_than_were_announced(late: Path) -> None:
    """Also by a model whose replies to logprobs calls can never be read."""

    def behave(body: Json, n: int, headers: object) -> Behaviour:
        if body.get("logprobs"):
            return Reply(completion("well", [{"well": 0.5, "no": 0.5}]))
        return Reply(completion('{"q1": {"yes": 0.9, "no": 0.1}}'))

    status, output, _, calls = probe(behave, "--concurrency", "1", late)
    announced = re.search(r"at most (\d+) model calls", output)
    assert status == 0 and announced and calls <= int(announced[1])


def test_states_come_from_a_file_of_lines(tmp_path: Path) -> None:
    questions = tmp_path / "q.json"
    asked = {"late": {**LATE, "when": {"plan": "pro"}}}
    questions.write_text(json.dumps(asked))
    lines = tmp_path / "in.jsonl"
    lines.write_text('"One"\n{"body": "Two"}\n"Three"\n')
    arguments = ("--json", "--input", str(lines), "--rows", "2", str(questions))
    status, output, _, calls = probe(understanding, *arguments)
    assert status == 0 and calls == 8 and json.loads(output)["states"] == 2


def test_given_wordings_are_asked(tmp_path: Path, late: Path) -> None:
    seen: list[str] = []

    def behave(body: Json, n: int, headers: object) -> Behaviour:
        seen.append(str(body["messages"]))
        return YES

    wordings = tmp_path / "w.json"
    wordings.write_text('{"late": {"same": ["Is it overdue?"], "denied": "Is it on time?"}}')
    status, output, _, _ = probe(behave, "--json", "--rows", "1", "--wordings", wordings, late)
    assert status == 0 and len(seen) == 3
    assert sum("Is it overdue?" in one for one in seen) == 1
    assert sum("Is it on time?" in one for one in seen) == 1
    assert changes(output, "late")["wording"]["compared"] == 1


def test_failures_are_told_and_end_with_1(late: Path) -> None:
    status, output, _, _ = probe(always(REFUSAL), late)
    assert status == 1
    assert "failed, 12 answers: model_error: " in output


def test_with_the_demonstration_model(tmp_path: Path) -> None:
    lines = tmp_path / "in.jsonl"
    lines.write_text('"My card was charged twice."\n')
    ended = svc("probe", "--demo", "--yes", "--input", lines, "lead-scoring")
    assert ended.returncode == 0, ended.stderr
    assert len(re.findall(r"^budget ", ended.stdout, re.M)) == 1
    assert len(re.findall(r"^fit ", ended.stdout, re.M)) == 3


@pytest.mark.parametrize(
    ("wordings", "problem"),
    [
        ("[]", "must be an object of question key to wordings"),
        ('{"early": ["x"]}', 'there is no question "early"'),
        ('{"late": []}', "must be a list of at least one text"),
        ('{"late": [" "]}', "must be texts that are not blank"),
        ('{"late": {"other": []}}', "may have same, a list, and denied, a text"),
        ("{", "the file is not JSON"),
    ],
)
def test_wordings_that_are_none_are_said_on_one_line(
    tmp_path: Path, late: Path, wordings: str, problem: str
) -> None:
    path = tmp_path / "w.json"
    path.write_text(wordings)
    ended = svc("probe", "--demo", "--wordings", path, late)
    assert ended.returncode == 1 and problem in ended.stderr and ended.stderr.count("\n") == 1


def test_without_states_there_is_nothing_to_ask_about() -> None:
    ended = svc("probe", "--demo", "sentiment")
    assert ended.returncode == 1 and "there is no state to ask about" in ended.stderr


def test_help_shows_examples() -> None:
    shown = CliRunner().invoke(main, ["probe", "--help"])
    assert "Examples:" in shown.output and "svc probe --demo" in shown.output
