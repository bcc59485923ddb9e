"""`svc map --url`: the lines of a file through a running server."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from svc.cli.server import Server as Asked
from svc.errors import SettingsError
from tests.cli.processes import lines, started, svc
from tests.cli.test_map import Files
from tests.e2e.serving import WAIT_S, Server
from tests.e2e.test_access import make_key
from tests.scripted import Reply, Reset, ScriptedProvider, Silent, always, sequence

DECIDED = Reply({"id": "dec_1", "cost_usd": 0.25, "answers": {"late": {"noul": 1.0}}})
LIMITED = {"error": {"type": "rate_limited", "message": "too many requests"}}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path)
    made.write([f"Parcel {number} is late." for number in range(40)])
    return made


def told(answers: dict[str, Any]) -> dict[str, Any]:
    """The parts of a line that do not differ from one run to another."""
    return {name: value for name, value in answers.items() if name not in ("id", "latency_ms")}


def test_the_lines_are_those_of_a_run_without_a_server(files: Files, tmp_path: Path) -> None:
    path = files.folder / "in.jsonl"
    path.write_text(path.read_text() + '{"vip": \n\n"Parcel 41"')
    assert files.map("--demo").returncode == 1
    alone = lines(files.output)
    files.output.unlink()
    files.output.with_name("out.jsonl.run.json").unlink()
    with Server(tmp_path / "svc.db", "--demo") as server:
        ended = files.map("--url", server.url)
    assert ended.returncode == 1, ended.stderr
    assert "43 lines, 2 errors" in ended.stderr
    assert [told(line) for line in lines(files.output)] == [
        {**told(line), **({"project": "default"} if "id" in line else {})} for line in alone
    ]


def test_a_line_has_the_id_of_a_decision_that_can_be_labelled(files: Files, tmp_path: Path) -> None:
    _, key = make_key(tmp_path / "svc.db", "ada", "--project", "shop")
    with Server(tmp_path / "svc.db", "--demo") as server:
        refused = files.map("--url", server.url)
        assert refused.returncode == 1
        assert "the server answered 401" in refused.stderr
        assert files.output.read_text() == ""
        given = ("--url", server.url, "--project", "shop")
        ended = files.map(*given, SVC_API_KEY=key)
        assert ended.returncode == 0, ended.stderr
        another = files.map("--url", server.url, SVC_API_KEY=key)
        assert another.returncode == 1
        assert "project" in another.stderr
        answer = requests.post(
            f"{server.url}/v1/feedback",
            json={"decision_id": lines(files.output)[3]["id"], "question": "late", "label": True},
            headers={"Authorization": f"Bearer {key}"},
            timeout=WAIT_S,
        )
        assert answer.status_code == 200
    assert key not in files.output.with_name("out.jsonl.run.json").read_text()


def test_a_rate_is_waited_for(files: Files) -> None:
    limited = Reply(LIMITED, 429, {"Retry-After": "1"})
    with ScriptedProvider(sequence(limited, limited, DECIDED)) as server:
        ended = files.map("--url", f"http://127.0.0.1:{server.port}")
        assert len(server.bodies) == 42
    assert ended.returncode == 0
    assert "40 lines, 0 errors, $10.0000" in ended.stderr
    assert all(line["answers"] for line in lines(files.output))


def test_a_spent_budget_ends_the_run_which_can_go_on_later(files: Files) -> None:
    limited = Reply(LIMITED, 429, {"Retry-After": "40000"})
    with ScriptedProvider(sequence(*[DECIDED] * 3, limited, DECIDED)) as server:
        url = f"http://127.0.0.1:{server.port}"
        ended = files.map("--url", url, "--concurrency", "1")
        assert ended.returncode == 1
        assert "at a limit for 40,000 s: too many requests; the same command" in ended.stderr
        assert len(lines(files.output)) == 3
        assert files.map("--url", url).returncode == 0
    assert [line["line"] for line in lines(files.output)] == list(range(1, 41))


@pytest.mark.slow
def test_a_server_that_is_started_again_is_waited_for(files: Files, tmp_path: Path) -> None:
    files.write([f"Parcel {number} is late." for number in range(1_000)])
    with Server(tmp_path / "svc.db", "--demo") as server:
        address = urlsplit(server.url).netloc
        with started(*files.arguments("--url", server.url)) as running:
            wait_for_lines(files.output)
            server.kill()
            with Server(tmp_path / "svc.db", "--demo", "--addr", address):
                _, told = running.communicate(timeout=4 * WAIT_S)
    assert running.returncode == 0, told
    assert b"1,000 lines, 0 errors" in told


def test_ctrl_c_ends_it_at_once_while_the_server_is_silent(files: Files) -> None:
    with ScriptedProvider(always(Silent())) as server:
        with started(*files.arguments("--url", f"http://127.0.0.1:{server.port}")) as running:
            while not server.bodies:
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            _, told = running.communicate(timeout=WAIT_S)
    assert running.returncode == 130
    assert b"Stopped after line 0: interrupted" in told


def keys(server: ScriptedProvider) -> dict[str, list[str | None]]:
    """The Idempotency-Keys of the requests about each state, in their order."""
    found: dict[str, list[str | None]] = {}
    for request in server.requests:
        if request.method == "POST":
            state = request.body["state"]
            found.setdefault(state, []).append(request.headers.get("idempotency-key"))
    return found


def test_a_line_whose_answer_is_lost_is_sent_again_with_its_own_key(files: Files) -> None:
    failed = Reply({"error": {"type": "model_error", "message": "no"}}, 502)
    with ScriptedProvider(sequence(Reset(), Reset(), DECIDED, failed, DECIDED)) as server:
        options = ("--url", f"http://127.0.0.1:{server.port}", "--concurrency", "1")
        assert "1 errors" in files.map(*options).stderr
        first = keys(server)
        files.output.write_bytes(b"".join(files.output.read_bytes().splitlines(True)[:30]))
        for more in ("--retry-failed", "--limit=40", "--restart"):
            assert files.map(*options, more).returncode == 0
        every = keys(server)
    assert [len(first[f"Parcel {number} is late."]) for number in range(3)] == [3, 1, 1]
    of_lines = {state: set(used) for state, used in first.items()}
    assert all(len(used) == 1 for used in of_lines.values())
    assert len(set.union(*of_lines.values())) == 40
    again = {state: used[len(first[state]) :] for state, used in every.items()}
    for state, (*continued, anew) in again.items():
        assert set(continued) <= of_lines[state] and anew not in of_lines[state]
    assert [len(again[f"Parcel {number} is late."]) for number in (0, 1, 30, 39)] == [1, 2, 2, 2]


def test_equal_lines_are_decided_each_by_itself(files: Files) -> None:
    files.write(["Parcel 1 is late."] * 3)
    with ScriptedProvider(always(DECIDED)) as server:
        url = f"http://127.0.0.1:{server.port}"
        assert files.map("--url", url).returncode == 0
        for _ in range(2):
            assert svc(*files.arguments("--url", url), "-o", "-").returncode == 0
        (used,) = keys(server).values()
    assert len(set(used)) == 9


def test_a_line_that_was_decided_and_whose_answer_is_not_kept_is_decided_again(
    files: Files,
) -> None:
    gone = "Idempotency-Key: the request was answered before, as dec_1, which has been deleted"
    refused = Reply({"error": {"type": "invalid_request", "message": gone}}, 422)
    with ScriptedProvider(sequence(refused, DECIDED)) as server:
        ended = files.map("--url", f"http://127.0.0.1:{server.port}", "--concurrency", "1")
        first, second = keys(server)["Parcel 0 is late."]
    assert ended.returncode == 0, ended.stderr
    assert first is not None and second is None


def test_a_decision_whose_answer_is_lost_is_made_once(files: Files, tmp_path: Path) -> None:
    with Server(tmp_path / "svc.db", "--demo") as server:
        assert files.map("--url", server.url, "--limit", "9").returncode == 0
        # As a killed run leaves it, to which the last answers did not come.
        files.output.write_bytes(b"".join(files.output.read_bytes().splitlines(True)[:5]))
        assert files.map("--url", server.url).returncode == 0
        stored = svc("export", "--url", server.url, "--format", "jsonl").stdout.splitlines()
    assert {json.loads(one)["id"] for one in stored} == {one["id"] for one in lines(files.output)}
    assert len(stored) == 40


@pytest.mark.parametrize("after", ["Sun, 22 Nov 2026 10:00:00 GMT", "nan", "-5", ""])
def test_a_rate_without_a_number_of_seconds_is_waited_for_too(files: Files, after: str) -> None:
    limited = Reply(LIMITED, 429, {"Retry-After": after})
    with ScriptedProvider(sequence(limited, DECIDED)) as server:
        ended = files.map("--url", f"http://127.0.0.1:{server.port}")
    assert ended.returncode == 0, ended.stderr
    assert "40 lines, 0 errors" in ended.stderr


def test_a_server_that_names_another_line_does_not_take_the_place_of_its_result(
    files: Files,
) -> None:
    liar = Reply({"line": 8, "id": "dec_2", "answers": {"late": {"noul": 0.5}}, "error": {}})
    refused = Reply({"error": {"type": "model_error", "message": "no"}}, 502)
    outcomes = sequence(DECIDED, refused, DECIDED, refused, *[DECIDED] * 36, liar)
    with ScriptedProvider(outcomes) as server:
        options = ("--url", f"http://127.0.0.1:{server.port}", "--concurrency", "1")
        assert "2 errors" in files.map(*options).stderr
        assert "2 lines asked again, 0 errors" in files.map(*options, "--retry-failed").stderr
        ids = {one["line"]: one["id"] for one in lines(files.output)}
        assert ids == {number: "dec_2" if number in (2, 4) else "dec_1" for number in range(1, 41)}
        assert "40 lines, 0 errors" in files.map(*options, "--restart").stderr
        assert "40 lines (40 of them before)" in files.map(*options).stderr


@pytest.mark.parametrize("cost", ["much", None, [1], 10**400, True])
def test_a_cost_that_is_no_number_of_dollars_counts_as_none(files: Files, cost: Any) -> None:
    decided = Reply({"id": "dec_1", "cost_usd": cost, "answers": {}})
    with ScriptedProvider(always(decided)) as server:
        ended = files.map("--url", f"http://127.0.0.1:{server.port}")
    assert ended.returncode == 0, ended.stderr
    assert "40 lines, 0 errors, $0.0000" in ended.stderr


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply("<html>"), "the server answered 200: it is no svc server"),
        (Reply({"error": {"type": "forbidden", "message": "no"}}, 403), "answered 403: no"),
        (Reply({"error": {"type": "model_error", "message": "all failed"}}, 502), "all failed"),
    ],
)
def test_what_would_fail_every_line_ends_the_run_and_leaves_the_lines_to_a_later_one(
    files: Files, reply: Reply, words: str
) -> None:
    with ScriptedProvider(always(reply)) as server:
        ended = files.map("--url", f"http://127.0.0.1:{server.port}")
    assert ended.returncode == 1
    assert words in ended.stderr
    assert files.output.read_text() == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--project", "shop"), "--project goes with --url only"),
        (("--demo", "--url", "http://127.0.0.1:1"), "--demo and --url exclude each other"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    files: Files, options: tuple[str, ...], words: str
) -> None:
    ended = files.map(*options)
    assert ended.returncode == 2
    assert words in ended.stderr


def test_where_there_is_no_server_it_says_so_at_once(files: Files) -> None:
    ended = files.map("--url", "http://127.0.0.1:1")
    assert ended.returncode == 1
    assert "No server answers at http://127.0.0.1:1; start one with `svc serve`" in ended.stderr
    assert not files.output.exists()


def test_a_url_of_another_form_is_refused(files: Files) -> None:
    ended = files.map("--url", "shop.example")
    assert ended.returncode == 1
    assert "--url is 'shop.example'; allowed: http://host:port" in ended.stderr


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:hunter2@shop.example",
        "http://ann:a/b#hunter2@shop.example",
        "ann:hunter2@shop.example",
        "https://shop.example?token=hunter2",
    ],
)
def test_a_refused_url_is_shown_without_its_secrets(url: str) -> None:
    with pytest.raises(SettingsError, match=r"--url is '.*shop\.example'; allowed") as refused:
        Asked(url)
    assert "hunter2" not in str(refused.value)


def wait_for_lines(path: Path) -> None:
    """Wait until a run has written a few lines."""
    until = time.monotonic() + WAIT_S
    while not path.exists() or path.read_bytes().count(b"\n") < 20:
        assert time.monotonic() < until, "no line was written"
        time.sleep(0.01)
