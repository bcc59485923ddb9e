"""`svc mcp`, as the official client starts it: a process of its own, its ends in pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
import requests
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from svc.openapi import decision_request
from svc.store.database import Database
from svc.store.keys import ApiKeys
from tests.cli.answers import Answers
from tests.cli.processes import SVC, svc
from tests.e2e.serving import ROOT, WAIT_S, Server, environment
from tests.openapi.judge import strict_judge
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, Silent

ASKED: dict[str, Any] = {
    "state": "My card was charged twice, please refund me.",
    "questions": {"refund": {"type": "noul", "instructions": "Is a refund asked for?"}},
}
NOWHERE = "http://127.0.0.1:1"  # where nothing listens


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("mcp") / "svc.db", "--demo") as server:
        yield server


Talk = Callable[[Client], Awaitable[Any]]


def spoken(talk: Talk, url: str, *more: str, mode: str = "auto", **settings: str) -> Any:
    """What comes of a talk of the official client with `svc mcp --url url`."""
    parameters = StdioServerParameters(
        command=SVC[0],
        args=[*SVC[1:], "mcp", "--url", url, *more],
        env=environment(**settings),
        cwd=ROOT,
    )

    async def session() -> Any:
        with anyio.fail_after(WAIT_S):
            async with Client(stdio_client(parameters), mode=mode) as client:
                return await talk(client)

    return anyio.run(session)


def decided(url: str, *more: str, arguments: Any = ASKED, **settings: str) -> CallToolResult:
    """The result of one call of the tool."""
    return spoken(lambda client: client.call_tool("decide", arguments), url, *more, **settings)


def refusal(result: CallToolResult) -> str:
    """The text of a tool's error."""
    (content,) = result.content
    assert result.is_error
    assert content.type == "text"
    assert "\n" not in content.text
    return content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_there_is_one_tool_with_the_requests_schema(mode: str) -> None:
    listed = spoken(lambda client: client.list_tools(), NOWHERE, mode=mode)
    (tool,) = listed.tools
    assert tool.name == "decide"
    assert "noul" in (tool.description or "")
    assert tool.input_schema == decision_request()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_decision_is_structured_and_text(server: Server, mode: str) -> None:
    result = spoken(lambda client: client.call_tool("decide", ASKED), server.url, mode=mode)
    assert not result.is_error
    strict_judge("DecisionResponse").validate(result.structured_content)
    assert result.structured_content["answers"]["refund"]["noul"] > 0.5
    (content,) = result.content
    assert content.type == "text"
    assert json.loads(content.text) == result.structured_content


def test_a_number_of_many_digits_is_an_answer_too(server: Server) -> None:
    number = "0.61234567890123456789012"
    plain = requests.post(f"{server.url}/v1/decide", json=ASKED, timeout=WAIT_S).text
    with Answers(Reply(re.sub(r'"noul":[0-9.]+', f'"noul":{number}', plain))) as other:
        result = decided(other.url)
    (content,) = result.content
    assert not result.is_error and content.type == "text" and number in content.text
    assert result.structured_content["answers"]["refund"]["noul"] == float(number)


def test_two_decisions_at_once_are_answered(server: Server) -> None:
    async def two(client: Client) -> list[bool]:
        results: list[bool] = []

        async def one(state: str) -> None:
            result = await client.call_tool("decide", {**ASKED, "state": state})
            results.append(result.is_error)

        async with anyio.create_task_group() as group:
            group.start_soon(one, "refund")
            group.start_soon(one, "hello")
        return results

    assert spoken(two, server.url) == [False, False]


def test_a_bad_question_gets_the_servers_words(server: Server) -> None:
    bad = {"state": "x", "questions": {"a": {"type": "score", "instructions": "How?"}}}
    text = refusal(decided(server.url, arguments=bad))
    assert text.startswith("The server refused the request; correct it and try again: ")
    assert 'question "a" levels: is required' in text
    assert "questions" in refusal(decided(server.url, arguments=None))


def test_a_server_that_is_away_is_said_to_be() -> None:
    text = refusal(decided(NOWHERE))
    assert NOWHERE in text and "svc serve" in text and "--url" in text


# Python's own limit lies at about a thousand, and who parses later has a little less of it.
@pytest.mark.parametrize("depth", [900, *range(970, 1_000, 5), 5_000])
def test_an_answer_that_is_nested_too_deeply_is_told(depth: int) -> None:
    deep = '{"answers": ' + "[" * depth + "]" * depth + "}"
    with ScriptedProvider(lambda body, n, headers: Reply(deep.encode())) as lying:
        result = decided(lying.url.removesuffix("/v1"))
    told = refusal(result)
    assert "nested too deeply" in told or "is not an svc server" in told


def test_a_missing_and_a_wrong_key_are_told_apart(tmp_path: Path) -> None:
    with Server(tmp_path / "svc.db", "--demo") as guarded:
        database = Database.open(str(tmp_path / "svc.db"))
        key = ApiKeys(database).create("agent", 600, None)
        database.close()
        assert key is not None
        assert "is missing" in refusal(decided(guarded.url))
        wrong = refusal(decided(guarded.url, "--api-key", "svc_wrong"))
        assert "was refused" in wrong and "--api-key" in wrong and "svc_wrong" not in wrong
        assert not decided(guarded.url, "--api-key", key.text).is_error
        assert not decided(guarded.url, SVC_API_KEY=key.text).is_error


def test_an_unknown_tool_is_an_error_that_names_the_known_one(server: Server) -> None:
    text = refusal(spoken(lambda client: client.call_tool("guess", {}), server.url))
    assert "decide" in text


VERSION = {"name": "test", "version": "0"}
GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": VERSION}
MESSAGES = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": GREETING},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "decide"}},
]


def lines(messages: list[Any]) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


def talking(messages: list[Any], *arguments: str) -> subprocess.Popen[bytes]:
    """`svc mcp` that was sent messages, and whose input is still open."""
    process = subprocess.Popen(
        [*SVC, "mcp", *arguments],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin
    process.stdin.write(lines(messages).encode())
    process.stdin.flush()
    return process


def test_nothing_but_protocol_is_written_and_the_end_of_input_ends_it() -> None:
    process = talking([MESSAGES[0], "no message", *MESSAGES[1:3]])
    assert process.stdout
    written = [json.loads(process.stdout.readline())]
    while written[-1].get("id") != 2:
        written.append(json.loads(process.stdout.readline()))
    rest, _ = process.communicate(timeout=WAIT_S)
    assert (process.returncode, rest) == (0, b"")
    assert all(message["jsonrpc"] == "2.0" for message in written)
    assert written[0]["id"] == 1


def test_the_end_of_input_ends_it_while_a_decision_is_waited_for() -> None:
    asked = threading.Event()

    def silent(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        asked.set()
        return Silent()

    with ScriptedProvider(silent) as server:
        process = talking(MESSAGES, "--url", f"http://127.0.0.1:{server.port}")
        assert asked.wait(WAIT_S)
        _, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, err) == (0, b"")


def test_ctrl_c_ends_it_without_a_word() -> None:
    process = talking(MESSAGES[:1])
    assert process.stdout
    process.stdout.readline()  # it is up
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"", b"")


def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith("mcp"):
            (tmp_path / path.name).symlink_to(path)
    ended = subprocess.run(
        [sys.executable, "-S", "-m", "svc.cli.main", "mcp"],
        cwd=ROOT,
        env=environment(PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)])),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert "pip install 'mcp>=2.0'" in line


@pytest.mark.parametrize(
    "arguments",
    [("--url", "localhost:7777"), ("--url", "ftp://x"), ("--url", ""), ("--api-key", "svc_\u00e4")],
)
def test_what_cannot_be_used_is_said_at_the_start(arguments: tuple[str, str]) -> None:
    ended = svc("mcp", *arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert arguments[0] in line


def test_the_help_shows_a_clients_configuration() -> None:
    shown = svc("mcp", "--help").stdout
    configuration = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
    assert configuration["mcpServers"]["svc"]["args"][0] == "mcp"
