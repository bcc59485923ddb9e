"""`svc map --provider-batch` against a double of the Batch API."""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.batching import BatchDouble
from tests.cli.processes import MODEL, NOUL, inside, lines, started, svc
from tests.e2e.serving import WAIT_S
from tests.scripted import Json, Reply, completion, error

# Ids and times differ from run to run.
CHANGING = {"id", "latency_ms"}
PRICE = {"SVC_PROVIDER_OWN_PRICE": "2,4"}


def said(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
    """A reply that depends on the parcel, the order of the options and the model."""
    text = json.dumps(body)
    number = re.search(r"Parcel (\d+)", text)
    seed = hash((number and number[1], text.find("yes") < text.find("no"), body["model"]))
    p = 0.5 + seed % 499 / 1_000
    return Reply(completion("yes", [{"yes": p, "no": 1 - p}]))


@dataclass(frozen=True)
class Run:
    """A run in a folder of the test's own."""

    folder: Path
    double: BatchDouble

    @property
    def output(self) -> Path:
        return self.folder / "out.jsonl"

    @property
    def book(self) -> Path:
        return self.folder / "out.jsonl.batch"

    @property
    def settings(self) -> dict[str, str]:
        return {
            "SVC_PROVIDER_OWN_URL": self.double.url,
            "SVC_PROVIDER_OWN_BATCH": "1",
            "SVC_BATCH_POLL_S": "0.1",
        }

    def write(self, states: Sequence[Any], questions: Any = NOUL) -> None:
        self.folder.joinpath("q.json").write_text(json.dumps(questions))
        text = "".join(f"{json.dumps(state)}\n" for state in states)
        self.folder.joinpath("in.jsonl").write_text(text)

    def arguments(self, *options: str, output: str = "out.jsonl") -> list[str | Path]:
        chosen = () if "--cascade" in options or "--council" in options else ("--model", MODEL)
        named = ["-q", self.folder / "q.json", "-o", self.folder / output]
        return ["map", *chosen, *options, *named, self.folder / "in.jsonl"]

    def map(self, *options: str, **settings: str) -> Any:
        arguments = self.arguments("--provider-batch", *options)
        return inside(*arguments, **{**self.settings, **settings})

    def directly(self, *options: str, **settings: str) -> list[Json]:
        """The decisions of the same run without batches."""
        asked = self.double.direct
        arguments = self.arguments(*options, output="direct.jsonl")
        assert inside(*arguments, **{**self.settings, **settings}).exit_code == 0
        self.double.direct = asked
        return lines(self.folder / "direct.jsonl")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with BatchDouble(said) as double:
        made = Run(tmp_path, double)
        made.write([f"Parcel {number} is late." for number in range(40)])
        yield made


def steady(decisions: Sequence[Json], *also: str) -> list[Json]:
    left_out = CHANGING | set(also)
    return [{key: line[key] for key in line.keys() - left_out} for line in decisions]


def test_batches_give_the_answers_of_direct_calls_at_half_the_price(run: Run) -> None:
    run.write([f"Parcel {number} is late." for number in range(200)])
    ended = run.map(**PRICE)
    assert ended.exit_code == 0, ended.stderr
    batched, directly = lines(run.output), run.directly(**PRICE)
    assert steady(batched, "cost_usd") == steady(directly, "cost_usd")
    assert run.double.creations == 1 and set(run.double.carried_out.values()) == {1}
    assert len(run.double.carried_out) == 400
    assert not run.book.exists() and not run.double.files


def test_what_others_laid_in_its_place_is_not_used(run: Run, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o777)
    run.book.symlink_to(elsewhere)
    ended = run.map()
    assert ended.exit_code == 1 and "out.jsonl.batch" in ended.stderr
    assert not list(elsewhere.iterdir())


def verbally(body: Json, n: int = 0, headers: Mapping[str, str] | None = None) -> Reply:
    """A model without log-probabilities, which does not take a temperature."""
    if "temperature" in body:
        return Reply(error("Unsupported value: 'temperature'", param="temperature"), status=400)
    if body.get("logprobs"):
        return Reply(error("logprobs are not supported", param="logprobs"), status=400)
    return Reply(completion('{"q1": {"yes": 0.8, "no": 0.2}}'))


def test_what_a_model_refuses_is_found_out_by_one_line_before_the_first_batch(run: Run) -> None:
    run.double.handler = verbally
    assert run.map().exit_code == 0
    assert run.double.creations == 1 and set(run.double.carried_out.values()) == {1}
    assert len(run.double.carried_out) == 80
    assert steady(lines(run.output)) == steady(run.directly())
    assert {line["mode"] for line in lines(run.output)} == {"verbal"}


STAGES = {
    "late": {**NOUL["late"], "rules": [{"if": {"vip": True}, "answer": True}]},
    "rain": {"type": "noul", "instructions": "Did it rain?", "when": {"@late": True}},
}


def test_stages_and_cascades_are_further_rounds(run: Run) -> None:
    run.write(
        [{"text": f"Parcel {number}", "vip": number % 3 == 0} for number in range(40)], STAGES
    )
    plan = ("--cascade", "@own/small,@own/large", "--escalate-below", "0.8")
    ended = run.map(*plan)
    assert ended.exit_code == 0, ended.stderr
    assert steady(lines(run.output)) == steady(run.directly(*plan))
    assert run.double.creations > 2 and set(run.double.carried_out.values()) == {1}
    models = [
        {json.loads(line)["body"]["model"] for line in file.splitlines()}
        for file in run.double.seen
    ]
    assert {"small"} in models and {"large"} in models and {"small", "large"} not in models


def test_all_members_and_thinking_questions_go_into_the_same_round(run: Run) -> None:
    think = {**NOUL["late"], "think": True, "instructions": "Is the parcel, all in all, late?"}
    run.write([f"Parcel {number}" for number in range(10)], {**NOUL, "thought": think})

    def handler(body: Json, n: int, headers: Mapping[str, str]) -> Reply:
        if body.get("logprobs"):
            return said(body)
        return Reply(completion('{"reasoning": "so", "q1": {"yes": 0.8, "no": 0.2}}'))

    run.double.handler = handler
    plan = ("--council", "@own/a,@own/b")
    ended = run.map(*plan)
    assert ended.exit_code == 0, ended.stderr
    assert "Round 2" not in ended.stderr
    # Two models, two questions that do not share a call, two orders.
    assert sorted(run.double.totals) == [40, 40]
    assert steady(lines(run.output)) == steady(run.directly(*plan))


def test_calls_that_expired_are_asked_again_in_the_next_round(run: Run) -> None:
    run.double.expiring = {0: 0.5, 1: 0.5}
    assert run.map().exit_code == 0
    assert steady(lines(run.output)) == steady(run.directly())
    assert run.double.totals == [80, 40, 20]
    assert set(run.double.carried_out.values()) == {1}


def test_calls_that_never_get_a_turn_are_error_lines_in_the_end(run: Run) -> None:
    run.double.expiring = dict.fromkeys(range(10), 1.0)
    ended = run.map()
    assert ended.exit_code == 1 and "40 of the lines have an error" in ended.stderr
    assert run.double.totals == [80] * 4
    assert {line["error"]["type"] for line in lines(run.output)} == {"model_error"}
    run.double.expiring = {}
    assert run.map("--retry-failed").exit_code == 0
    assert all("answers" in line for line in lines(run.output))
    assert sorted(path.name for path in run.folder.glob("*.batch")) == []


def test_calls_at_a_rate_limit_are_asked_again_and_other_refusals_are_not(run: Run) -> None:
    seen = Counter[str]()

    def handler(body: Json, n: int, headers: Mapping[str, str]) -> Reply:
        text = json.dumps(body)
        seen[text] += 1
        if "Parcel 7 " in text and seen[text] == 1:
            return Reply(error("slow down"), status=429)
        if "Parcel 9 " in text:
            return Reply(error("against our policy"), status=403)
        return said(body)

    run.double.handler = handler
    assert run.map().exit_code == 1
    written = lines(run.output)
    assert "answers" in written[7] and written[9]["error"]["type"] == "model_error"
    # The refusal sends the line down its ladder, as it does where it is asked directly.
    refused = [number for text, number in seen.items() if "Parcel 9 " in text]
    assert set(refused) == {1} and run.double.totals[0] == 80


@pytest.mark.parametrize("lost", ["lost_uploads", "lost_creations"])
def test_what_lost_its_response_is_not_done_again(run: Run, lost: str) -> None:
    getattr(run.double, lost).update({0, 1, 2})
    ended = run.map()
    assert ended.exit_code == 0, ended.stderr
    assert (run.double.uploads, run.double.creations) == (1, 1)
    assert set(run.double.carried_out.values()) == {1}


def test_a_batch_that_the_provider_refuses_ends_the_run_and_is_created_anew(run: Run) -> None:
    run.double.failing[0] = "billing_hard_limit_reached"
    ended = run.map()
    assert ended.exit_code == 1
    assert re.search(r"refused batch svc-\S+ \(billing_hard_limit_reached\)", ended.stderr)
    assert "the same command continues from there" in ended.stderr
    assert run.map().exit_code == 0 and run.double.creations == 2 and run.double.uploads == 1


def test_a_key_that_is_not_accepted_ends_the_run(run: Run) -> None:
    run.double.key = "right"
    ended = run.map(SVC_PROVIDER_OWN_KEY="wrong")
    assert ended.exit_code == 1 and "does not accept the key" in ended.stderr
    assert run.map(SVC_PROVIDER_OWN_KEY="right").exit_code == 0


def wait_for_batch(run: Run, number: int = 1) -> None:
    end = time.monotonic() + WAIT_S
    while len(run.double.batches) < number:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_interrupted_run_goes_on_with_the_same_command(run: Run) -> None:
    run.double.takes_s = 3_600
    process = started(*run.arguments("--provider-batch"), **run.settings)
    wait_for_batch(run)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130 and b"the same command continues" in told
    run.double.takes_s = 0
    assert run.map().exit_code == 0
    assert run.double.creations == 1 and run.double.direct == 2


def test_a_run_that_starts_again_cancels_its_batches(run: Run) -> None:
    run.double.takes_s = 3_600
    process = started(*run.arguments("--provider-batch"), **run.settings)
    wait_for_batch(run)
    process.kill()
    process.communicate()
    run.output.unlink()
    run.write(["Parcel 1"])
    ended = run.map()
    assert ended.exit_code == 1 and "belongs to another run" in ended.stderr
    process = started(*run.arguments("--provider-batch", "--restart"), **run.settings)
    wait_for_batch(run, 2)
    run.double.takes_s = 0
    process.communicate(timeout=WAIT_S)
    first, second = run.double.batches.values()
    assert process.returncode == 0 and first.cancelled and not second.cancelled
    assert len(run.double.carried_out) == 2


@pytest.mark.parametrize("configured", [True, False])
def test_a_run_that_starts_again_with_another_provider_leaves_nothing_at_the_first(
    run: Run, configured: bool
) -> None:
    """Or says that it does."""
    run.double.takes_s = 3_600
    process = started(*run.arguments("--provider-batch"), **run.settings)
    wait_for_batch(run)
    process.kill()
    process.communicate()
    with BatchDouble(run.double.handler) as other:
        two = {"SVC_PROVIDER_TWO_URL": other.url, "SVC_PROVIDER_TWO_BATCH": "1"}
        settings = {**run.settings, **two}
        if not configured:
            del settings["SVC_PROVIDER_OWN_URL"], settings["SVC_PROVIDER_OWN_BATCH"]
        named = ["-q", run.folder / "q.json", "-o", run.output, run.folder / "in.jsonl"]
        ended = inside(
            "map", "--model", "@two/m", "--provider-batch", "--restart", *named, **settings
        )
    assert ended.exit_code == 0
    (first,) = run.double.batches.values()
    assert first.cancelled is configured and bool(run.double.files) is not configured
    assert ("the provider still has one batch" in ended.stderr) is not configured


@pytest.mark.parametrize(
    ("damaged", "named"),
    [
        ("book.json", "book.json"),
        ("000000/0001.round", "0001.round"),
        ("000000/0001-000.json", "0001-000.json"),
        ("000000/0001-000.replies", "000000"),
    ],
)
@pytest.mark.parametrize("held", [b"\n", b"[1]", b'{"nope": 1}', b"\xff {"])
def test_a_damaged_folder_is_named_and_a_run_that_starts_again_does_without(
    run: Run, damaged: str, named: str, held: bytes
) -> None:
    run.write(["Parcel 1"])
    run.double.takes_s = 3_600
    process = started(*run.arguments("--provider-batch"), **run.settings)
    wait_for_batch(run)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WAIT_S)
    run.double.takes_s = 0
    run.book.joinpath(damaged).write_bytes(held)
    ended = run.map()
    assert ended.exit_code == 1
    assert named in ended.stderr and "is damaged; --restart starts again" in ended.stderr
    ended = run.map("--restart")
    assert ended.exit_code == 0 and len(lines(run.output)) == 1


def test_input_from_a_pipe_is_answered_too(run: Run) -> None:
    arguments = [*run.arguments("--provider-batch")[:-1], "-"]
    ended = svc(*arguments, stdin='"Parcel 1"\n\n{"a":\n"Parcel 2"\n', **run.settings)
    assert ended.returncode == 1
    assert ["answers" in line for line in lines(run.output)] == [True, False, False, True]


def test_a_provider_without_batches_is_refused_with_the_variable_that_says_otherwise(
    run: Run,
) -> None:
    ended = run.map(SVC_PROVIDER_OWN_BATCH="0")
    assert ended.exit_code == 2 and "set SVC_PROVIDER_OWN_BATCH=1" in ended.stderr
    assert not run.output.exists() and not run.book.exists()


@pytest.mark.parametrize("option", [("--demo",), ("--url", "http://127.0.0.1:1"), ("-o", "-")])
def test_batches_do_not_go_with_other_ways_of_answering(run: Run, option: Sequence[str]) -> None:
    ended = inside(*run.arguments("--provider-batch"), *option, **run.settings)
    assert ended.exit_code == 2 and "--provider-batch goes with neither" in ended.stderr


def test_a_dry_run_tells_the_price_of_batches(run: Run) -> None:
    told = inside(
        *("map", "--provider-batch", "--dry-run", "--model", "@openai/gpt-4.1-mini"),
        *("-q", run.folder / "q.json", "-o", run.output, run.folder / "in.jsonl"),
        OPENAI_API_KEY="k",
    ).stdout
    whole = inside(
        *("map", "--dry-run", "--model", "@openai/gpt-4.1-mini"),
        *("-q", run.folder / "q.json", "-o", run.output, run.folder / "in.jsonl"),
        OPENAI_API_KEY="k",
    ).stdout
    (half,), (full,) = (re.findall(r"\$([0-9.]+)\n", text) for text in (told, whole))
    assert float(half) == pytest.approx(float(full) / 2, rel=0.1)
