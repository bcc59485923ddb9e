from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from tests.cli.processes import MODEL, YES, started, svc
from tests.e2e.serving import WAIT_S, Server
from tests.evals.samples import LATE, TEAM, rows, write_set
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, Silent, always, completion

REFUSAL = Reply({"error": {"message": "no"}}, status=400)
VERBAL_YES = Reply(completion('{"q1": {"yes": 0.9, "no": 0.1}}'))
TEAMS = [{"state": f"my payments, number {n}", "label": "billing"} for n in range(6)]
TEAMS += [{"state": f"errors, number {n}", "label": "technical"} for n in range(6)]


@dataclass(frozen=True)
class Tuning:
    """A folder with an eval set and the file that comes of it."""

    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "tuned.json"

    def arguments(self, *options: str) -> list[str | Path]:
        return ["tune", "--dir", self.folder, "--out", self.out, *options]

    def tune(self, *options: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return svc(*self.arguments(*options), **settings)


@pytest.fixture
def tuning(tmp_path: Path) -> Tuning:
    write_set(tmp_path, "team", TEAM, TEAMS)
    write_set(tmp_path, "late", LATE, [*rows(16), *rows(32, label=False)[16:]])
    return Tuning(tmp_path)


def ranking(output: str) -> Sequence[list[str]]:
    """The cells of the table's rows, the best first."""
    table = output.split("\n\n")[1].splitlines()
    return [re.split(r"  +", line.strip()) for line in table[1:]]


def test_what_comes_of_it_is_a_request(tuning: Tuning) -> None:
    ended = tuning.tune("--demo", "--yes", "team")
    assert ended.returncode == 0, ended.stderr
    assert "team: 12 rows, 8 to test on" in ended.stdout and "8 candidates" in ended.stdout
    fields = json.loads(tuning.out.read_text())
    assert fields.keys() == {"model", "mode", "debias", "questions"}
    with Server(tuning.folder / "svc.db", "--demo") as server:
        reply = server.post({**fields, "state": "I see errors"})
        assert reply.status_code == 200, reply.text
    assert reply.json()["answers"]["team"]["choice"] == "technical"
    assert reply.json()["model"] == fields["model"] == "@demo/lexical"


def test_many_calls_have_to_be_agreed_to_before_the_first(tuning: Tuning) -> None:
    with ScriptedProvider(always(YES)) as provider:
        options = ["--models", MODEL, "late"]
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
        assert provider.bodies == []
        assert ended.returncode == 1 and not tuning.out.exists()
        assert ended.stdout == (
            "late: 32 rows, 26 to test on and 6 to take examples from\n"
            "8 candidates, at most 468 model calls, besides repeats of those that fail\n"
            "The winner will not be judged: half of the rows are held out to judge it, at least 10 "
            'of each answer; that takes 20 rows of each answer, and "false" has 12, those for '
            "examples and states that come again not counted.\n"
        )
        assert re.fullmatch(r"Error: 468 model calls are more than 200; --yes .*\n", ended.stderr)
        less = tuning.tune("--per-set", "10", "--demo", "team")
        assert less.returncode == 0 and "at most 108 model calls" in less.stdout


def test_under_ten_positives_no_winner_is_named(tuning: Tuning) -> None:
    write_set(tuning.folder, "late", LATE, [*rows(4), *rows(60, label=False)[4:]])
    with ScriptedProvider(always(YES)) as provider:
        options = ["--models", MODEL, "--yes", "late"]
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
        assert provider.bodies == []
    assert (ended.returncode, ended.stdout, tuning.out.exists()) == (1, "", False)
    assert re.fullmatch(
        r"Error: late has \d rows with the label true to test on; tune judges no way to ask with "
        r"fewer than 10 of each label, and names no winner\n",
        ended.stderr,
    )


def test_no_more_calls_are_made_than_were_announced(tuning: Tuning) -> None:
    """Also by a model whose replies to logprobs calls can never be read."""

    def behave(body: Json, n: int, headers: object) -> Behaviour:
        return (
            Reply(completion("well", [{"well": 0.5, "no": 0.5}]))
            if body.get("logprobs")
            else (VERBAL_YES)
        )

    with ScriptedProvider(behave) as provider:
        options = ["--models", MODEL, "--yes", "late"]
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
        assert ended.returncode == 0, ended.stderr
        assert "at most 468 model calls" in ended.stdout
        # That it can be asked verbally alone is found out once, and then known.
        assert len(provider.bodies) == 26 * 12


def both_answers(tuning: Tuning, count: int) -> None:
    """An eval set with enough rows of yes and of no to judge on."""
    said = [*rows(count), *({"state": f"On time {n}", "label": False} for n in range(count))]
    write_set(tuning.folder, "late", LATE, said)


def knowing(body: Json, n: int, headers: object) -> Behaviour:
    """A model that knows the answer by the state, where it is asked in the words that it knows."""
    text = body["messages"][-1]["content"]
    on_time = re.findall(r">\n(On time|Parcel) \d+", text)[-1] == "On time"
    yes = on_time != ("overdue" in text)
    if not body.get("logprobs"):
        return Reply(completion(json.dumps({"q1": {"yes": float(yes), "no": float(not yes)}})))
    return Reply(completion("yes" if yes else "no", [{"yes" if yes else "no": 1.0}]))


def test_the_winner_is_judged_on_rows_that_did_not_choose_it(tuning: Tuning) -> None:
    both_answers(tuning, 32)
    with ScriptedProvider(always(YES)) as provider:
        ended = tuning.tune("--models", MODEL, "--yes", "late", SVC_PROVIDER_OWN_URL=provider.url)
        prompts = [body["messages"][-1]["content"] for body in provider.bodies]
    assert ended.returncode == 0, ended.stderr
    head = re.match(r"late: 64 rows, (\d+) to choose on, (\d+) to judge on and 12", ended.stdout)
    assert head
    choosing, judging = map(int, head.groups())
    assert choosing + judging == 52 and judging >= 20
    judged = re.search(r"Judged on (\d+) rows .*: ([\d.]+)% right, 95% interval", ended.stdout)
    assert judged and int(judged[1]) == judging
    states = [re.findall(r">\n((?:On time|Parcel) \d+)", text)[-1] for text in prompts]
    once = [state for state in set(states) if states.count(state) <= 2]
    assert len(once) == judging


def test_wordings_that_were_given_are_tried_with_the_best_way(tuning: Tuning) -> None:
    both_answers(tuning, 32)
    wordings = tuning.folder / "w.json"
    wordings.write_text(
        '["Has it come too late?", "Is the parcel overdue?", "is the parcel  LATE?"]'
    )
    options = ["--models", MODEL, "--yes", "--wordings", str(wordings), "late"]
    with ScriptedProvider(knowing) as provider:
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
        announced = re.search(r"other wordings of the best, at most (\d+) model", ended.stdout)
        assert announced and len(provider.bodies) <= int(announced[1])
    assert ended.returncode == 0, ended.stderr
    asked = json.loads(tuning.out.read_text())["questions"]["late"]
    assert asked["instructions"] == "Is the parcel overdue?"
    assert "\n1  Is the parcel overdue?\n" in ended.stdout
    assert "first way with the first wording" in ended.stdout
    assert re.search(
        r"Judged on \d+ rows that had no say in the choice: 100.0% right", ended.stdout
    )


def test_wordings_that_a_model_writes_are_tried_where_they_are_sound(tuning: Tuning) -> None:
    both_answers(tuning, 32)
    written = {"value": "Is the parcel overdue?", "confidence": 1}
    faulty = {"value": "Surely it is overdue, isn't it?", "confidence": 1}

    def behave(body: Json, n: int, headers: object) -> Behaviour:
        if "Write the instructions" in str(body["messages"]):
            replies = {"q1": written, "q2": faulty, "q3": written}
            return Reply(completion(json.dumps(replies)))
        return knowing(body, n, headers)

    options = ["--models", MODEL, "--yes", "--propose", "3", "late"]
    with ScriptedProvider(behave) as provider:
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
        announced = re.search(r"at most ([\d,]+) model", ended.stdout)
        assert announced and len(provider.bodies) <= int(announced[1].replace(",", ""))
    assert ended.returncode == 0, ended.stderr
    assert "\n1  Is the parcel overdue?\n2  Is the parcel late?\n" in ended.stdout
    assert "Surely" not in ended.stdout


def test_no_more_calls_are_made_than_were_announced_with_wordings_and_a_judgement(
    tuning: Tuning,
) -> None:
    """By a model that is asked twice for each answer, as its label replies cannot be read."""
    both_answers(tuning, 25)
    wordings = tuning.folder / "w.json"
    wordings.write_text('["Has it come too late?"]')

    def behave(body: Json, n: int, headers: object) -> Behaviour:
        if body.get("logprobs"):
            return Reply(completion("well", [{"well": 0.5, "no": 0.5}]))
        return VERBAL_YES

    options = ["--models", MODEL, "--yes", "--wordings", str(wordings), "--propose", "2", "late"]
    with ScriptedProvider(behave) as provider:
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
        announced = re.search(r"at most ([\d,]+) model", ended.stdout)
        assert announced and len(provider.bodies) <= int(announced[1].replace(",", ""))
    assert ended.returncode == 0, ended.stderr


def test_faults_of_the_wording_are_printed_first(tuning: Tuning) -> None:
    question = {**LATE, "instructions": "Surely the parcel is late?"}
    write_set(tuning.folder, "late", question, [*rows(16), *rows(16, label=False)])
    ended = tuning.tune("--demo", "--yes", "late")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith('late instructions: "surely" says which answer is wanted')


def test_several_models_are_tried_alone_and_together(tuning: Tuning) -> None:
    with ScriptedProvider(always(YES)) as provider:
        options = ["--models", f"{MODEL},@own/n", "--yes", "late"]
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
    assert ended.returncode == 0, ended.stderr
    assert "48 candidates" in ended.stdout
    plans = {row[0] for row in ranking(ended.stdout)}
    assert {MODEL, "@own/n", "council of @own/m, @own/n"} < plans and len(plans) == 6
    assert "cascade of @own/m, @own/n below 0.7" in plans


def test_the_model_that_is_right_wins_over_one_that_is_gone(tuning: Tuning) -> None:
    def behave(body: Json, n: int, headers: object) -> Behaviour:
        if body["model"] == "gone":
            return Reply({"error": {"message": "no such model"}}, status=404)
        return YES if body.get("logprobs") else VERBAL_YES

    with ScriptedProvider(behave) as provider:
        options = ["--models", f"@own/gone,{MODEL}", "--yes", "late"]
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
        asked = [body["model"] for body in provider.bodies]
    assert ended.returncode == 0, ended.stderr
    assert json.loads(tuning.out.read_text())["model"] != "@own/gone"
    assert ranking(ended.stdout)[-1][0] == "@own/gone"
    assert asked.count("m") > 0


def test_examples_come_from_rows_that_nothing_is_tested_on(tuning: Tuning) -> None:
    with ScriptedProvider(always(YES)) as provider:
        options = ["--models", MODEL, "--yes", "late"]
        assert tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url).returncode == 0
        prompts = [body["messages"][-1]["content"] for body in provider.bodies]
    shown = {n for text in prompts for n in re.findall(r"Example input: Parcel (\d+)", text)}
    tested = {re.findall(r">\nParcel (\d+)", text)[-1] for text in prompts}
    assert len(shown) == 4 and len(tested) == 26 and not shown & tested


def test_models_that_never_answer_leave_no_file(tuning: Tuning) -> None:
    with ScriptedProvider(always(REFUSAL)) as provider:
        options = ["--models", MODEL, "--concurrency", "1", "--yes", "late"]
        ended = tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
    assert ended.returncode == 1 and "no candidate gave any answer" in ended.stderr
    assert not tuning.out.exists()


def test_a_candidate_is_given_up_after_ten_failures_in_a_row(tuning: Tuning) -> None:
    write_set(tuning.folder, "late", LATE, [*rows(50), *rows(50, label=False)])  # 80 to test on
    with ScriptedProvider(always(REFUSAL)) as provider:
        options = ["--models", MODEL, "--concurrency", "1", "--yes", "late"]
        tuning.tune(*options, SVC_PROVIDER_OWN_URL=provider.url)
        assert len(provider.bodies) < 80 * 8  # of over 3,000 without giving up


def test_a_file_behind_a_link_is_replaced_where_it_is(tuning: Tuning) -> None:
    tuning.out.symlink_to("elsewhere.json")
    assert tuning.tune("--demo", "--yes", "team").returncode == 0
    assert tuning.out.is_symlink() and (tuning.folder / "elsewhere.json").is_file()


def test_a_winner_that_cannot_be_written_is_printed(tuning: Tuning) -> None:
    ended = svc("tune", "--dir", tuning.folder, "--out", "/dev/full", "--demo", "--yes", "team")
    assert ended.returncode == 1
    *_, told, fields, error = ended.stderr.splitlines()
    assert told == "What was to be written:"
    assert json.loads(fields).keys() == {"model", "mode", "debias", "questions"}
    assert error == "Error: --out '/dev/full': no space left on device"


def test_a_spent_quota_ends_it(tuning: Tuning) -> None:
    with ScriptedProvider(always(YES)) as provider:
        settings = {"SVC_PROVIDER_URL": provider.url, "SVC_DAILY_LIMIT": "20"}
        ended = tuning.tune("--models", "m", "--yes", "late", **settings)
        assert len(provider.bodies) <= 20
    assert ended.returncode == 1 and not tuning.out.exists()
    assert "Error: the calls that SVC_DAILY_LIMIT allows one run are spent" in ended.stderr


def test_ctrl_c_ends_it_at_once(tuning: Tuning) -> None:
    asked = threading.Event()

    def behave(body: Json, n: int, headers: object) -> Behaviour:
        asked.set()
        return Silent()

    with ScriptedProvider(behave) as provider:
        arguments = tuning.arguments("--models", MODEL, "--yes", "late")
        process = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
        assert asked.wait(WAIT_S)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130 and errors.strip() == b"Error: interrupted"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["late", "team"], "unexpected extra argument"),
        ([], "Missing argument"),
        (["--models", "a,a", "late"], "different ids"),
        (["--models", "a,,b", "late"], "different ids"),
        (["--models", "a,b,c,d,e,f", "late"], "at most 5"),
        (["--per-set", "0", "late"], "--per-set"),
        (["--propose", "9", "late"], "--propose"),
        (["--out", "OUT", "late"], "names a file that is read"),
        (["--out", "OUT", "--wordings", "OUT", "team"], "names a file that is read"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    tuning: Tuning, options: Sequence[str], problem: str
) -> None:
    named = [str(tuning.folder / "late.json") if one == "OUT" else one for one in options]
    ended = CliRunner().invoke(main, list(map(str, tuning.arguments(*named))))
    assert ended.exit_code == 2 and problem in ended.output


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["nosuch"], "there is no eval set 'nosuch'"),
        (["--models", "@none/m", "late"], "provider 'none' is not configured"),
        (["--demo", "--out", "/nonexistent/t.json", "late"], "no such file or directory"),
        (["--demo", "--out", "", "late"], "is a directory"),
        (["--demo", "--wordings", "/nonexistent/w.json", "late"], "no such file or directory"),
        (["--demo", "--out", "a" * 300, "late"], "file name too long"),
        (["--demo", "--per-set", "7", "late"], "late has 7 rows to tune on; it takes at least 8"),
        (["--demo", "--per-set", "20", "late"], "tune judges no way to ask with fewer than 10"),
    ],
)
def test_what_cannot_be_done_is_said_on_one_line(
    tuning: Tuning, options: Sequence[str], problem: str
) -> None:
    ended = tuning.tune(*options)
    assert ended.returncode == 1 and problem in ended.stderr
    assert ended.stderr.count("\n") == 1 and ended.stdout == ""


def test_help_shows_examples() -> None:
    shown = CliRunner().invoke(main, ["tune", "--help"])
    assert "Examples:" in shown.output and "svc tune --demo" in shown.output
