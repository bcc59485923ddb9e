from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from tests.cli.processes import MODEL, SVC, YES, lines, started, svc
from tests.e2e.serving import ROOT, WAIT_S, environment
from tests.evals.samples import LATE, PEOPLE, TEAM, rows, write_set
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, Silent, always

REFUSAL = Reply({"error": {"message": "no"}}, status=400)


@dataclass(frozen=True)
class Evals:
    """A folder of eval sets and a file to save to."""

    folder: Path

    @property
    def saved(self) -> Path:
        return self.folder / "runs.jsonl"

    def write(self, name: str, rows: Sequence[Any], question: Any = LATE) -> None:
        write_set(self.folder, name, question, rows)

    def arguments(self, *options: str) -> list[str | Path]:
        model = [] if "--demo" in options else ["--model", MODEL]
        return ["bench", "--dir", self.folder, "--save", self.saved, *model, *options]

    def bench(self, *options: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return svc(*self.arguments(*options), **settings)

    def bench_by(
        self, provider: ScriptedProvider, *options: str, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        return self.bench(*options, SVC_PROVIDER_OWN_URL=provider.url, **settings)


@pytest.fixture
def evals(tmp_path: Path) -> Evals:
    made = Evals(tmp_path)
    made.write("late", [*rows(15), *rows(20, label=False)[15:]])
    return made


def cells(output: str, name: str) -> list[str]:
    """The cells of a row of the table."""
    (line,) = [line for line in output.splitlines() if re.match(rf"{name} ", line)]
    return re.split(r"  +", line.strip())


def test_the_table_says_how_right_how_calibrated_and_how_automatic(evals: Evals) -> None:
    with ScriptedProvider(always(YES)) as provider:
        ended = evals.bench_by(provider)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"{MODEL}, mode auto, both option orders, svc-1.3.0\n\nset ")
    found = cells(ended.stdout, "late")
    assert found[:9] == [
        *["late", "20", "75.0%", "53.1-88.8%", "0.150", "0.210"],
        *["100.0%", "75.0%", "$0.0000"],
    ]
    assert found[9].endswith("ms") and found[-1] == "0"


def test_all_sets_are_asked_and_summed_up(evals: Evals) -> None:
    evals.write("people", [{"state": "table for 4", "label": 4}], PEOPLE)
    evals.write("team", [{"state": "my payments", "label": "billing"}], TEAM)
    ended = evals.bench("--demo")
    assert ended.returncode == 0, ended.stderr
    assert [cells(ended.stdout, name)[1] for name in ("late", "people", "team")] == ["20", "1", "1"]
    assert cells(ended.stdout, "overall")[1] == "22"
    only = evals.bench("--demo", "people", "late", "--per-set", "3").stdout
    assert cells(only, "late")[1] == "3" and "team" not in only


def test_a_rerun_asks_only_what_is_missing(evals: Evals) -> None:
    with ScriptedProvider(always(YES)) as provider:
        part = evals.bench_by(provider, "--per-set", "5")
        assert part.returncode == 0 and len(provider.bodies) == 10
        whole = evals.bench_by(provider)
        assert "5 of 20 rows were scored before" in whole.stderr
        assert len(provider.bodies) == 40
        again = evals.bench_by(provider)
        assert len(provider.bodies) == 40 and again.stdout == whole.stdout
        evals.bench_by(provider, "--no-debias")
        assert len(provider.bodies) == 60
        evals.write("late", [*rows(19), {"state": "another", "label": True}])
        evals.bench_by(provider)
        assert len(provider.bodies) == 70  # five labels are others now


def test_a_spent_quota_stops_it_and_a_rerun_goes_on(evals: Evals) -> None:
    with ScriptedProvider(always(YES)) as provider:
        settings = {"SVC_PROVIDER_URL": provider.url, "SVC_DAILY_LIMIT": "12"}
        ended = evals.bench("--model", "m", "--concurrency", "1", **settings)
        assert ended.returncode == 1
        assert (
            "Stopped after 6 rows: the calls that SVC_DAILY_LIMIT allows one run are"
            in ended.stderr
        )
        assert "the same command continues from there" in ended.stderr
        assert cells(ended.stdout, "late")[1] == "6"
        ended = evals.bench("--model", "m", SVC_PROVIDER_URL=provider.url)
        assert ended.returncode == 0 and len(provider.bodies) == 40
        assert cells(ended.stdout, "late")[1] == "20"


def test_a_failed_row_is_marked_and_a_rerun_asks_it_again(evals: Evals) -> None:
    def behave(body: Json, n: int, headers: object) -> Behaviour:
        return REFUSAL if "Parcel 3 " in json.dumps(body) else YES

    with ScriptedProvider(behave) as provider:
        ended = evals.bench_by(provider)
        assert ended.returncode == 1
        assert cells(ended.stdout, "late")[1] == "19" and cells(ended.stdout, "late")[-1] == "1"
        assert (
            "failed, 1 rows: model_error: model '@own/m': the model's provider refused the call"
            in ended.stdout
        )
    with ScriptedProvider(always(YES)) as provider:
        assert evals.bench_by(provider).returncode == 0
        assert len(provider.bodies) == 2


def test_ten_failures_in_a_row_end_it(evals: Evals) -> None:
    with ScriptedProvider(always(REFUSAL)) as provider:
        ended = evals.bench_by(provider, "--concurrency", "1", "--no-debias")
    assert ended.returncode == 1
    assert "Stopped after 10 rows: 10 failures in a row" in ended.stderr
    assert cells(ended.stdout, "late")[-1] == "10"
    assert [line["row"] for line in lines(evals.saved)] == list(range(1, 11))


def test_sets_that_a_mode_cannot_answer_are_left_out(evals: Evals) -> None:
    evals.write("people", [{"state": "table for 4", "label": 4}], PEOPLE)
    ended = evals.bench("--demo", "--mode", "logprobs")
    assert ended.returncode == 0
    assert "people is left out: " in ended.stderr and "people" not in ended.stdout
    ended = evals.bench("--demo", "--mode", "logprobs", "people")
    assert ended.returncode == 1 and "no eval set can be asked in this way" in ended.stderr


def test_rules_and_conditions_of_a_question_count_too(evals: Evals) -> None:
    rule = {"if": {"plan": "pro"}, "answer": True}
    question = {**LATE, "when": {"kind": "parcel"}, "rules": [rule]}
    states = [{"kind": "parcel", "plan": "pro"}, {"kind": "letter"}]
    evals.write("ruled", [{"state": state, "label": True} for state in states], question)
    with ScriptedProvider(always(YES)) as provider:
        ended = evals.bench_by(provider, "ruled")
        assert provider.bodies == []
    assert ended.returncode == 0 and cells(ended.stdout, "ruled")[1:3] == ["1", "100.0%"]


def test_killed_at_any_moment_it_goes_on_without_losing_a_row(evals: Evals) -> None:
    evals.write("late", rows(60))
    slow = Reply(YES.body, delay=0.03)
    with ScriptedProvider(always(slow)) as provider:
        arguments = evals.arguments("--concurrency", "2")
        for _ in range(3):
            before = _size(evals.saved)
            process = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
            _wait_for(lambda before=before: _size(evals.saved) > before + 1_000)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        saved = len(lines(evals.saved))
        ended = evals.bench_by(provider)
    assert 3 <= saved < 60
    assert f"{saved} of 60 rows were scored before" in ended.stderr
    assert sorted(line["row"] for line in lines(evals.saved)) == list(range(1, 61))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _wait_for(condition: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_ctrl_c_ends_it_with_what_is_known(evals: Evals) -> None:
    asked = threading.Event()

    def behave(body: Json, n: int, headers: object) -> Behaviour:
        if n < 6:
            return YES
        asked.set()
        return Silent()

    with ScriptedProvider(behave) as provider:
        arguments = evals.arguments("--concurrency", "1", "--no-debias")
        process = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
        assert asked.wait(WAIT_S)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130 and b"Traceback" not in errors
    # All six are answered, and on a busy machine the last ones are just coming in.
    stopped = re.match(rb"Stopped after (\d) rows?: interrupted", errors)
    assert stopped, errors
    assert cells(output.decode(), "late")[1] == stopped[1].decode()


def test_a_terminal_shows_how_far_it_is(evals: Evals) -> None:
    with ScriptedProvider(always(Reply(YES.body, delay=0.03))) as provider:
        settings = environment(SVC_PROVIDER_OWN_URL=provider.url)
        arguments = list(map(str, evals.arguments("--concurrency", "1")))
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*SVC, *arguments], cwd=ROOT, env=settings, stderr=theirs, stdout=subprocess.PIPE
        )
        os.close(theirs)
        output, _ = process.communicate(timeout=WAIT_S)
        shown = os.read(ours, 65_536).decode()
        os.close(ours)
    assert re.search(r"\[#+\.+\] +\d+%  \d+ of 20 rows, ", shown)
    assert b"\x1b" not in output and cells(output.decode(), "late")[1] == "20"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["nosuch"], "there is no eval set 'nosuch'"),
        (["--model", "@none/m"], "provider 'none' is not configured"),
        (["--demo", "--save", "/dev/null"], "regular file"),
    ],
)
def test_what_cannot_be_done_is_said_on_one_line(
    evals: Evals, options: list[str], problem: str
) -> None:
    ended = svc("bench", "--dir", evals.folder, *options)
    assert ended.returncode == 1 and problem in ended.stderr
    assert ended.stderr.count("\n") == 1 and ended.stdout == ""


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--model", "a,b", "--race", "a,b"], "exclude each other"),
        (["--per-set", "0"], "--per-set"),
        (["--concurrency", "0"], "--concurrency"),
    ],
)
def test_a_wrong_command_line_ends_with_2(evals: Evals, options: list[str], problem: str) -> None:
    ended = CliRunner().invoke(main, ["bench", "--dir", str(evals.folder), *options])
    assert ended.exit_code == 2 and problem in ended.output


def test_a_full_disk_ends_it_on_one_line(evals: Evals) -> None:
    script = (
        f"ulimit -f 1; trap '' XFSZ; exec {' '.join(map(str, [*SVC, *evals.arguments('--demo')]))}"
    )
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert ended.returncode == 1
    assert re.fullmatch(r"Error: file '.*': cannot write: file too large\n", ended.stderr)
    assert evals.bench("--demo").returncode == 0
    assert sorted(line["row"] for line in lines(evals.saved)) == list(range(1, 21))


def test_help_shows_examples() -> None:
    shown = CliRunner().invoke(main, ["bench", "--help"])
    assert "Examples:" in shown.output and "svc bench --demo" in shown.output
