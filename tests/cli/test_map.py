from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from tests.cli.processes import MODEL, NOUL, SVC, YES, lines, shell, started, svc
from tests.e2e.serving import ROOT, WAIT_S, environment
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, Silent, always, completion

REFUSAL = Reply({"error": {"message": "no"}}, status=400)


@dataclass(frozen=True)
class Files:
    """The files of a run, in a folder of the test's own."""

    folder: Path

    @property
    def output(self) -> Path:
        return self.folder / "out.jsonl"

    def arguments(self, *options: str) -> list[str | Path]:
        folder = self.folder
        named = ["-q", folder / "q.json", "-o", self.output, folder / "in.jsonl"]
        return ["map", *options, *named]

    def write(self, states: Sequence[Any], questions: Any = NOUL) -> None:
        self.folder.joinpath("q.json").write_text(json.dumps(questions))
        text = "".join(f"{json.dumps(state)}\n" for state in states)
        self.folder.joinpath("in.jsonl").write_text(text)

    def map(self, *options: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return svc(*self.arguments(*options), **settings)

    def map_by(
        self, provider: ScriptedProvider, *options: str, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        url = {"SVC_PROVIDER_OWN_URL": provider.url}
        return self.map("--model", MODEL, *options, **url, **settings)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path)
    made.write([f"Parcel {number} is late." for number in range(40)])
    return made


def states_asked(provider: ScriptedProvider) -> set[str]:
    """The numbers of the parcels that the provider was asked about."""
    found = (re.search(r"Parcel (\d+)", json.dumps(body)) for body in provider.bodies)
    return {match[1] for match in found if match}


def test_every_line_has_its_result_in_the_order_of_the_input(files: Files) -> None:
    ended = files.map("--demo")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert re.search(r"^40 lines, 0 errors, \$0\.0000, \d+ s, \d+/s$", ended.stderr, re.M)
    written = lines(files.output)
    assert [line["line"] for line in written] == list(range(1, 41))
    assert all(line["answers"]["late"]["noul"] > 0.5 for line in written)
    assert all(line["model"] == "@demo/lexical" and line["debiased"] for line in written)


def test_a_line_at_fault_is_an_error_line_and_the_status_says_so(files: Files) -> None:
    files.write(["a", "b", "c", "d"], {"q": {**NOUL["late"], "when": {"vip": True}}})
    path = files.folder / "in.jsonl"
    path.write_text('{"vip": true}\n{"vip": \n"no object"\n\n{"vip": false}')
    ended = files.map("--demo")
    assert ended.returncode == 1
    answered, broken, unfit, empty, skipped = lines(files.output)
    assert answered["answers"]["q"]["noul"] >= 0
    assert broken["error"]["type"] == "invalid_json" and broken["line"] == 2
    assert unfit["error"]["type"] == "invalid_request" and "an object" in unfit["error"]["message"]
    assert empty["error"]["message"] == "the line is empty"
    assert skipped["answers"] == {"q": {"skipped": True}}


def test_standard_input_goes_to_standard_output(files: Files) -> None:
    questions = files.folder / "q.json"
    ended = svc("map", "--demo", "-q", questions, "-o", "-", "-", stdin='"late"\n{"a": 1}\n')
    assert ended.returncode == 0
    assert [json.loads(line)["line"] for line in ended.stdout.splitlines()] == [1, 2]
    assert ended.stderr.startswith("2 lines, 0 errors")


def test_the_options_reach_the_models(files: Files) -> None:
    reply = Reply(completion('{"q1": {"yes": 0.9, "no": 0.1}}'))
    with ScriptedProvider(always(reply)) as provider:
        ended = files.map_by(provider, "--mode", "verbal", "--no-debias", "--concurrency", "40")
        assert ended.returncode == 0, ended.stderr
        assert len(provider.bodies) == 40
    assert {line["mode"] for line in lines(files.output)} == {"verbal"}


def test_a_rerun_does_what_is_missing_and_nothing_twice(files: Files) -> None:
    with ScriptedProvider(always(YES)) as provider:
        assert files.map_by(provider).returncode == 0
        whole = files.output.read_bytes()
        third = whole.index(b'{"line":4,')
        files.output.write_bytes(whole[: third + 20])  # half of line 4
        asked = len(provider.bodies)
        ended = files.map_by(provider)
        assert len(provider.bodies) - asked == 37 * 2
    assert ended.returncode == 0 and "40 lines (3 of them before)" in ended.stderr
    assert "$0.0000 in this run" in ended.stderr
    assert files.output.read_bytes().startswith(whole[:third])
    assert [line["line"] for line in lines(files.output)] == list(range(1, 41))


def test_a_finished_output_is_left_as_it_is(files: Files) -> None:
    files.map("--demo")
    before = files.output.read_bytes()
    assert files.map("--demo").returncode == 0
    assert files.output.read_bytes() == before


@pytest.mark.parametrize("change", ["model", "debias", "questions", "input"])
def test_another_run_is_refused_unless_it_restarts(files: Files, change: str) -> None:
    files.map("--demo")
    before, options = files.output.read_bytes(), ["--demo"]
    if change == "model":
        options += ["--race", "@demo/lexical,@demo/lexical"]
    elif change == "debias":
        options += ["--no-debias"]
    elif change == "questions":
        files.folder.joinpath("q.json").write_text(json.dumps({"other": NOUL["late"]}))
    else:
        files.write([f"Parcel {number} is late." for number in range(41)])
    refused = files.map(*options)
    assert refused.returncode == 1 and files.output.read_bytes() == before
    assert refused.stderr.count("\n") == 1
    assert f"belongs to a run with a different {change}; --restart starts again" in refused.stderr
    assert files.map(*options, "--restart").returncode == 0
    assert files.output.read_bytes() != before


def test_a_damaged_record_tells_the_terminal_nothing(files: Files) -> None:
    files.map("--demo")
    record = files.output.with_name(files.output.name + ".run.json")
    began = json.loads(record.read_text("utf-8"))
    record.write_text(json.dumps({**began, "\n\x1b[2J\x9b31mforged": 1}), "utf-8")
    refused = files.map("--demo")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1 and refused.stderr.strip().isprintable()


def test_an_outage_leaves_its_lines_to_a_rerun(files: Files) -> None:
    def failing(body: Json, n: int, headers: Any) -> Behaviour:
        return YES if re.search(r"Parcel [0-4] ", json.dumps(body)) else REFUSAL

    with ScriptedProvider(failing) as provider:
        ended = files.map_by(provider)
    assert ended.returncode == 1
    assert "Stopped after line 5: no model answered 10 lines in a row" in ended.stderr
    assert "the same command continues from there" in ended.stderr
    assert [line["line"] for line in lines(files.output)] == [1, 2, 3, 4, 5]
    with ScriptedProvider(always(YES)) as provider:
        assert files.map_by(provider).returncode == 0
        assert len(states_asked(provider)) == 35
    assert not any("error" in line for line in lines(files.output))


def failing_on(pattern: str) -> Any:
    """A provider that refuses calls about some parcels."""

    def behave(body: Json, n: int, headers: Any) -> Behaviour:
        return REFUSAL if re.search(rf"Parcel {pattern} ", json.dumps(body)) else YES

    return behave


def test_a_short_outage_says_what_would_do_its_lines_again(files: Files) -> None:
    with ScriptedProvider(failing_on("(?:[34]|39)")) as provider:
        ended = files.map_by(provider)
    assert ended.returncode == 1 and "40 lines, 3 errors" in ended.stderr
    assert "3 of the lines have an error because no model answered; --retry-failed" in ended.stderr


def test_more_results_than_lines_are_refused(files: Files) -> None:
    files.map("--demo")
    with files.output.open("ab") as output:
        output.write(b'{"line":41,"id":"a"}\n')
    ended = files.map("--demo")
    assert ended.returncode == 1
    assert "the output has 41 lines, the input only 40; --restart" in ended.stderr


def test_an_input_that_shrinks_is_said_so(files: Files) -> None:
    files.write([f"Parcel {number} is late. {'x' * 50_000}" for number in range(60)])
    path = files.folder / "in.jsonl"
    size = sum(map(len, path.read_bytes().splitlines(keepends=True)[:50]))

    def behave(body: Json, n: int, headers: Any) -> Behaviour:
        os.truncate(path, size)
        return YES

    with ScriptedProvider(behave) as provider:
        ended = files.map_by(provider, "--concurrency", "1", "--no-debias")
    assert ended.returncode == 1
    assert "it had 60 lines at first, 50 at the end" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("50 lines, 0 errors")


def test_a_spent_quota_leaves_its_lines_to_a_rerun_and_no_half_answer(files: Files) -> None:
    with ScriptedProvider(always(YES)) as provider:
        settings = {"SVC_PROVIDER_URL": provider.url, "SVC_DAILY_LIMIT": "7"}
        ended = files.map("--model", "m", "--concurrency", "1", **settings)
        assert len(provider.bodies) == 7
        assert ended.returncode == 1
        assert "Stopped after line 3: the calls that SVC_DAILY_LIMIT allows one run" in ended.stderr
        assert [line["debiased"] for line in lines(files.output)] == [True] * 3
        settings["SVC_DAILY_LIMIT"] = "100"
        assert files.map("--model", "m", **settings).returncode == 0
    assert all(line["debiased"] for line in lines(files.output))


@contextlib.contextmanager
def inherited(number: signal.Signals, handler: signal.Handlers) -> Iterator[None]:
    """Processes that are started in this block begin with this handler of a signal."""
    before = signal.signal(number, handler)
    yield
    signal.signal(number, before)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interruption_ends_at_once_and_cleanly(
    files: Files, number: signal.Signals, status: int
) -> None:
    stuck = threading.Event()

    def behave(body: Json, n: int, headers: Any) -> Behaviour:
        if re.search(r"Parcel [0-4] ", json.dumps(body)):
            return YES
        stuck.set()
        return Silent()

    with ScriptedProvider(behave) as provider:
        arguments = files.arguments("--model", MODEL, "--concurrency", "64")
        with inherited(signal.SIGHUP, signal.SIG_DFL):
            process = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
        assert stuck.wait(WAIT_S)
        while not files.output.exists() or files.output.read_bytes().count(b"\n") < 5:
            assert process.poll() is None
        os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == status
    assert errors.decode().startswith("Stopped after line 5: interrupted; the same command")
    assert b"Traceback" not in errors
    assert [line["line"] for line in lines(files.output)] == [1, 2, 3, 4, 5]


@pytest.mark.skipif(os.cpu_count() == 1, reason="one processor gets one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_of_many_stays_behind(files: Files, number: signal.Signals) -> None:
    asked = threading.Semaphore(0)

    def behave(body: Json, n: int, headers: Any) -> Behaviour:
        asked.release()
        return Silent()

    with ScriptedProvider(behave) as provider:
        arguments = files.arguments("--model", MODEL, "--concurrency", "64", "--no-debias")
        process = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
        for _ in range(40):
            assert asked.acquire(timeout=WAIT_S)
        assert _members(process.pid) > {process.pid}
        process.send_signal(number)
        process.communicate(timeout=WAIT_S)
        assert process.returncode in (130, -signal.SIGKILL)
        end = time.monotonic() + WAIT_S
        while _members(process.pid):
            assert time.monotonic() < end
    assert files.output.read_bytes() == b""


@pytest.mark.skipif(os.cpu_count() == 1, reason="one processor gets one process")
def test_a_process_of_many_that_is_lost_stops_the_run(files: Files) -> None:
    asked, lost = threading.Semaphore(0), threading.Event()

    def behave(body: Json, n: int, headers: Any) -> Behaviour:
        asked.release()
        assert lost.wait(WAIT_S)
        return YES

    with ScriptedProvider(behave) as provider:
        arguments = files.arguments("--model", MODEL, "--concurrency", "64", "--no-debias")
        process = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
        for _ in range(40):
            assert asked.acquire(timeout=WAIT_S)
        os.kill(max(_members(process.pid) - {process.pid}), signal.SIGKILL)
        lost.set()
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    stopped, summary = errors.decode().splitlines()
    done = len(lines(files.output))
    assert done < 40 and summary.startswith(f"{done} lines, 0 errors")
    assert stopped == (
        f"Stopped after line {done}: a process of this run ended unexpectedly; the same command "
        "continues from there."
    )
    with ScriptedProvider(always(YES)) as provider:
        assert files.map_by(provider, "--no-debias").returncode == 0


def _members(group: int) -> set[int]:
    """The processes of a process group that are alive."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, _, member_of = path.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state != "Z":
                found.add(int(path.parent.name))
    return found


def test_many_lines_at_once_come_in_their_order_too(files: Files) -> None:
    files.write([f"Parcel {number} is late." for number in range(300)])
    with ScriptedProvider(always(YES)) as provider:
        ended = files.map_by(provider, "--concurrency", "70")
        assert len(provider.bodies) == 600
    assert ended.returncode == 0, ended.stderr
    assert [line["line"] for line in lines(files.output)] == list(range(1, 301))
    assert len({line["id"] for line in lines(files.output)}) == 300


def test_processes_share_the_rate_limit(files: Files) -> None:
    files.write([f"Parcel {number} is late." for number in range(250)])
    with ScriptedProvider(always(YES)) as provider:
        limited = {"SVC_PROVIDER_OWN_RPM": "1200"}  # 200 at once, then 20 a second
        start = time.monotonic()
        ended = files.map_by(provider, "--concurrency", "64", "--no-debias", **limited)
        assert ended.returncode == 0
        assert time.monotonic() - start > (250 - 200) / 20


def waiting_for_input(files: Files) -> tuple[subprocess.Popen[bytes], int]:
    """A run that has answered one line and waits for another, and where this is to be written."""
    reading, writing = os.pipe()
    command = [*SVC, *map(str, files.arguments("--demo"))][:-1]
    process = subprocess.Popen(
        [*command, "-"],
        stdin=reading,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )
    os.close(reading)
    os.write(writing, b'"late"\n')
    while not files.output.exists() or not files.output.read_bytes().endswith(b"\n"):
        assert process.poll() is None
    return process, writing


def test_ctrl_c_ends_a_run_that_waits_for_its_input(files: Files) -> None:
    process, writing = waiting_for_input(files)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WAIT_S)
    os.close(writing)
    assert (process.returncode, b"Stopped after line 1: interrupted" in errors) == (130, True)


def test_under_nohup_a_run_outlives_its_terminal(files: Files) -> None:
    with inherited(signal.SIGHUP, signal.SIG_IGN):
        process, writing = waiting_for_input(files)
    process.send_signal(signal.SIGHUP)
    os.write(writing, b'"late"\n')
    os.close(writing)
    _, errors = process.communicate(timeout=WAIT_S)
    assert (process.returncode, errors.startswith(b"2 lines, 0 errors")) == (0, True)


def test_what_was_asked_again_before_kill_9_is_not_asked_a_third_time(files: Files) -> None:
    failing = True

    def behave(body: Json, n: int, headers: Any) -> Behaviour:
        asked = json.dumps(body)
        if not re.search(r"Parcel (1|2[0-8]) ", asked):
            return YES
        return REFUSAL if failing else Silent() if "Parcel 28 " in asked else YES

    with ScriptedProvider(behave) as provider:
        assert "10 errors" in files.map_by(provider, "--no-debias").stderr
        failing = False
        again = ("--no-debias", "--retry-failed", "--concurrency", "1")
        arguments = files.arguments("--model", MODEL, *again)
        process = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
        kept = files.folder / "out.jsonl.retried"
        while not kept.exists() or b'{"line":28,' not in kept.read_bytes():
            assert process.poll() is None
        process.kill()
        process.communicate()
        assert sum("error" in line for line in lines(files.output)) == 10
    with ScriptedProvider(always(YES)) as provider:
        ended = files.map_by(provider, *again)
        assert states_asked(provider) == {"28"}
    assert ended.returncode == 0 and ended.stderr.startswith("1 lines asked again, 0 errors")
    written = lines(files.output)
    assert [line["line"] for line in written] == list(range(1, 41))
    assert all("answers" in line for line in written)
    assert not kept.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(("concurrency", "slow"), [("8", 3), ("64", 3), ("8", 0)])
def test_what_was_answered_behind_a_slow_line_is_not_asked_again(
    files: Files, number: signal.Signals, concurrency: str, slow: int
) -> None:
    def behave(body: Json, n: int, headers: Any) -> Behaviour:
        return Silent() if f"Parcel {slow} " in json.dumps(body) else YES

    options = ("--no-debias", "--concurrency", concurrency)
    ahead = files.folder / "out.jsonl.ahead"
    with ScriptedProvider(behave) as provider:
        arguments = files.arguments("--model", MODEL, *options)
        process = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
        while not ahead.exists() or ahead.read_bytes().count(b"\n") < 40 - slow:
            assert process.poll() is None
        os.killpg(process.pid, number)
        _, errors = process.communicate(timeout=WAIT_S)
    told = f"{39 - slow} lines behind it were answered, and are kept for it.\n{slow} lines, 0"
    assert (told.encode() in errors) == (number == signal.SIGTERM)
    with ScriptedProvider(always(YES)) as provider:
        ended = files.map_by(provider, *options)
        assert states_asked(provider) == {str(slow)}
    assert ended.returncode == 0
    assert [line["line"] for line in lines(files.output)] == list(range(1, 41))
    assert not ahead.exists()


def kept_before(files: Files) -> Path:
    """What a run has left of line 3, which is behind a slow one."""
    digest = hashlib.sha256((files.folder / "out.jsonl.run.json").read_bytes()).hexdigest()
    ahead = files.folder / "out.jsonl.ahead"
    ahead.write_text(f'{{"ahead":"{digest}"}}\n{{"line":3,"answers":"of the run before"}}\n')
    return ahead


@pytest.mark.parametrize("deleted", [False, True])
def test_a_run_that_starts_again_takes_nothing_from_the_one_before(
    files: Files, deleted: bool
) -> None:
    assert files.map("--demo", "--limit", "2").returncode == 0
    content = kept_before(files).read_bytes()
    assert files.map("--demo", "--limit", "3").returncode == 0
    assert lines(files.output)[2]["answers"] == "of the run before"
    kept_before(files).write_bytes(content)
    if deleted:
        files.output.unlink()
    again = [] if deleted else ["--restart"]
    assert files.map("--demo", "--limit", "3", *again).returncode == 0
    assert lines(files.output)[2]["answers"] != "of the run before"


def test_lines_from_a_pipe_get_no_answers_that_were_kept(files: Files) -> None:
    arguments = [*files.arguments("--demo")[:-1], "-"]
    piped = f'head -3 "{files.folder}/in.jsonl" | "$@"'
    assert shell(piped, *arguments, "--limit", "2").returncode == 0
    kept_before(files)
    assert shell(piped, *arguments).returncode == 0
    assert lines(files.output)[2]["answers"] != "of the run before"


def test_two_at_once_do_not_write_the_same_output(files: Files) -> None:
    asked = threading.Event()

    def behave(body: Json, n: int, headers: Any) -> Behaviour:
        asked.set()
        return Silent()

    with ScriptedProvider(behave) as provider:
        arguments = files.arguments("--model", MODEL)
        first = started(*arguments, SVC_PROVIDER_OWN_URL=provider.url)
        assert asked.wait(WAIT_S)
        second = files.map_by(provider, "--restart")
        first.terminate()
        first.communicate(timeout=WAIT_S)
    assert second.returncode == 1 and "another process is writing it" in second.stderr


def test_a_full_disk_is_said_so_and_the_run_goes_on_once_there_is_room(files: Files) -> None:
    command = " ".join(map(str, [*SVC, *files.arguments("--demo")]))
    full = subprocess.run(
        ["bash", "-c", f"ulimit -f 4; exec {command}"],  # KiB
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert full.returncode == 1
    assert full.stderr.endswith("cannot write: file too large\n") and "Traceback" not in full.stderr
    assert files.output.stat().st_size == 4096
    assert files.map("--demo").returncode == 0
    assert [line["line"] for line in lines(files.output)] == list(range(1, 41))


def test_a_terminal_shows_a_bar(files: Files) -> None:
    terminal, end = pty.openpty()
    with ScriptedProvider(always(YES)) as provider:
        process = subprocess.Popen(
            [*SVC, *map(str, files.arguments("--model", MODEL, "--concurrency", "1"))],
            stderr=end,
            cwd=ROOT,
            env=environment(SVC_PROVIDER_OWN_URL=provider.url),
        )
        os.close(end)
        shown = b""
        while chunk := _read(terminal):
            shown += chunk
        assert process.wait(WAIT_S) == 0
    os.close(terminal)
    bars = re.findall(rb"\[#*\.*\] +\d+%  \d+ of 40 lines, [\d.]+/(?:s|min), \$0\.0000", shown)
    assert bars and shown.count(b"\r\x1b[K") > len(bars)
    assert re.search(rb"\x1b\[K40 lines, 0 errors, .*\r\n$", shown)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.parametrize(
    "options",
    [
        ["--council", "a"],
        ["--council", "a,b", "--race", "a,b"],
        ["--escalate-below", "0.5"],
        ["--cascade", "a,b", "--escalate-below", "2"],
        ["--cascade", "a,b", "--escalate-below", "nan"],
        ["--model", "a,,b"],
        ["--mode", "guess"],
        ["--concurrency", "0"],
        ["--nonsense"],
    ],
)
def test_a_wrong_command_line_ends_with_2(files: Files, options: list[str]) -> None:
    ended = CliRunner().invoke(main, list(map(str, files.arguments(*options))))
    assert ended.exit_code == 2
    assert options[0] in ended.output
    assert not files.output.exists()


def test_help_shows_examples() -> None:
    shown = CliRunner().invoke(main, ["map", "--help"])
    assert shown.exit_code == 0
    assert "Examples:" in shown.output and "svc map --demo -q" in shown.output


def test_what_would_fail_every_line_is_one_error_before_the_first(files: Files) -> None:
    for options in (["--model", "m"], ["--model", "@none/m"], []):
        ended = files.map(*options)
        assert ended.returncode == 1
        assert ended.stderr.startswith("Error: model") and ended.stderr.count("\n") == 1
    assert not files.output.exists()


@pytest.mark.parametrize(
    ("questions", "words"),
    [("", "the file is empty"), ("{", "the file is not JSON"), ('{"q": {"type": "x"}}', "'x'")],
)
def test_questions_that_are_none_are_one_error(files: Files, questions: str, words: str) -> None:
    files.folder.joinpath("q.json").write_text(questions)
    ended = files.map("--demo")
    assert ended.returncode == 1 and ended.stderr.count("\n") == 1
    assert words in ended.stderr.replace('"', "'") and "q.json" in ended.stderr


def test_an_output_that_is_also_the_input_is_refused(files: Files) -> None:
    before = (files.folder / "in.jsonl").read_bytes()
    questions, source = files.folder / "q.json", files.folder / "in.jsonl"
    ended = svc("map", "--demo", "--restart", "-q", questions, "-o", source, source)
    assert ended.returncode == 1 and "is also read from" in ended.stderr
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    "script",
    ['"$@" -o - in.jsonl >> in.jsonl', '"$@" --restart -o in.jsonl - < in.jsonl']
    + ['"$@" --restart -o - in.jsonl >> q.json', '"$@" -o /dev/stdout - < in.jsonl >> in.jsonl'],
)
def test_a_redirection_onto_what_is_read_is_refused(files: Files, script: str) -> None:
    before = [(path, path.read_bytes()) for path in sorted(files.folder.iterdir())]
    ended = shell(f"cd {files.folder}; {script}", "map", "--demo", "-q", "q.json", PYTHONPATH=ROOT)
    assert ended.returncode == 1 and "is also read from; name another file" in ended.stderr
    assert [(path, path.read_bytes()) for path in sorted(files.folder.iterdir())] == before


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
def test_messages_that_nobody_takes_end_nothing(files: Files, stream: str) -> None:
    assert shell(f'"$@" {stream}', *files.arguments("--demo")).returncode == 0
    assert len(lines(files.output)) == 40


def test_a_byte_order_mark_is_no_part_of_the_questions(files: Files) -> None:
    path = files.folder / "q.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert files.map("--demo").returncode == 0


def test_questions_may_be_named_as_a_recipe_and_a_file_of_that_name_is_taken_first(
    files: Files,
) -> None:
    arguments = ("map", "--demo", "-q", "spam", "-o", "-", "in.jsonl")
    files.write(["Parcel 1 is late."])
    script = f'cd {files.folder}; "$@"'
    recipe = shell(script, *arguments, PYTHONPATH=str(ROOT))
    assert list(json.loads(recipe.stdout)["answers"]) == ["spam", "kind"], recipe.stderr
    files.folder.joinpath("q.json").rename(files.folder / "spam")
    own = shell(script, *arguments, PYTHONPATH=str(ROOT))
    assert list(json.loads(own.stdout)["answers"]) == ["late"], own.stderr


def test_a_reader_that_has_seen_enough_ends_a_run_without_a_word(files: Files) -> None:
    named = ("map", "--demo", "-q", files.folder / "q.json", "-o", "-", files.folder / "in.jsonl")
    ended = shell('"$@" | head -1; exit ${PIPESTATUS[0]}', *named)
    assert ended.stdout.startswith('{"line":1,')
    assert (ended.returncode, ended.stderr) in ((0, ""), (0, _summary(ended.stderr)))


def _summary(text: str) -> str:
    """The text where the run was over before anybody left."""
    return text if text.startswith("40 lines, 0 errors") else ""
