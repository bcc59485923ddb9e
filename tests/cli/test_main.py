from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click
import pytest
from click.testing import CliRunner

from svc import __version__
from svc.cli.main import COMMANDS, main
from tests.cli.processes import shell

HEAVY = ("flask", "numpy", "requests", "gunicorn", "marshmallow", "cryptography")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_every_command(option: str) -> None:
    shown = CliRunner().invoke(main, [option])
    assert shown.exit_code == 0
    assert all(f"  {name} " in shown.output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_of_its_own(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "-h"])
    assert shown.exit_code == 0
    assert COMMANDS[name] in shown.output


def _every_command(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _every_command(inner, *path, name)


@pytest.mark.parametrize("path", list(_every_command(main)), ids=" ".join)
def test_every_command_has_an_example_in_its_help(path: tuple[str, ...]) -> None:
    assert "\n  Example" in CliRunner().invoke(main, [*path, "-h"]).output


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_shown(option: str) -> None:
    assert CliRunner().invoke(main, [option], prog_name="svc").output == f"svc {__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from svc.cli.main import main; main(['--help'], standalone_mode=False);"
        f"sys.exit(repr([name for name in {HEAVY!r} if name in sys.modules] or 0))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stderr.strip() == "0"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["keys"],
        ["serve", "--nonsense"],
        ["serve", "--db"],
        ["shadow", "-q", "q", "INPUT", "-o", "-"],
    ],
)
def test_a_usage_error_ends_with_2_and_without_a_traceback(arguments: list[str]) -> None:
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == 2
    (line,) = ended.output.splitlines()
    assert line.startswith("Error: ")
    assert arguments[-1] in line
    assert not re.search(r"[^.?] See `", line)


def test_an_error_of_ours_is_one_line_and_ends_with_1() -> None:
    ended = CliRunner().invoke(main, ["serve", "--latest-config", "svc-0.0.1"])
    assert ended.exit_code == 1
    (line,) = ended.output.splitlines()
    assert line.startswith("Error: --latest-config is 'svc-0.0.1'; allowed: ")


def run(*arguments: str, stdout: int | IO[bytes]) -> tuple[int, str]:
    """The exit status and standard error of `svc` with these arguments."""
    command = [sys.executable, "-m", "svc.cli.main", *arguments]
    ended = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, timeout=60)
    return ended.returncode, ended.stderr.decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_device_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        assert run("--help", stdout=full) == (1, "Error: no space left on device\n")


def test_an_argument_that_is_not_utf8_is_told() -> None:
    ended = shell(""""$@" $'\\xff'""", "ask", "--demo", "-r", "sentiment")
    assert ended.stderr == "Error: argument 5 is not UTF-8\n"


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as nobody:
        assert run("--help", stdout=nobody) == (0, "")


@pytest.mark.parametrize(
    ("closed", "status"), [("2>&-", 0), (">&-", 1), (">&- 2>&-", 1), ("<&- >&- 2>&-", 1)]
)
def test_of_closed_streams_messages_are_lost_and_results_an_error(
    closed: str, status: int, tmp_path: Path
) -> None:
    arguments = ["keys", "create", "--name", "a", "--db", tmp_path / "svc.db"]
    ended = shell(f'"$@" {closed}', *arguments)
    assert ended.returncode == status
    assert ("bad file descriptor" in ended.stderr) == (closed == ">&-")
    listed = shell('"$@"', "keys", "list", "--db", tmp_path / "svc.db").stdout
    assert ("revoked" in listed) == (status == 1)
    assert shell(f'"$@" {closed}', "map", "--demo", "-q", "q", "-o", "-", "-").returncode == 1
    assert shell(f'"$@" {closed}', "nonsense").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_device_for_messages_ends_nothing(tmp_path: Path) -> None:
    ended = shell('"$@" 2>/dev/full', "keys", "create", "--name", "a", "--db", tmp_path / "svc.db")
    assert ended.returncode == 0 and "key: svc_" in ended.stdout


def test_what_a_terminal_cannot_show_is_a_question_mark(tmp_path: Path) -> None:
    arguments = ["keys", "revoke", "→", "--db", str(tmp_path / "svc.db")]
    shell('"$@"', "keys", "create", "--name", "a→b", "--db", tmp_path / "svc.db")
    listed = shell('"$@"', "keys", "list", *arguments[3:], PYTHONIOENCODING="latin-1")
    assert listed.returncode == 0 and " a?b " in listed.stdout
    refused = shell('"$@"', *arguments, PYTHONIOENCODING="latin-1")
    assert refused.returncode == 1 and "'?'" in refused.stderr


def test_alone_and_with_help_the_commands_are_listed() -> None:
    alone, helped, option = (CliRunner().invoke(main, one) for one in ([], ["help"], ["--help"]))
    assert alone.output == helped.output == option.output
    assert (alone.exit_code, helped.exit_code) == (0, 0)


@pytest.mark.parametrize("path", [["keys"], ["keys", "create"], ["map"]])
def test_help_shows_that_of_a_command(path: list[str]) -> None:
    shown = CliRunner().invoke(main, ["help", *path], prog_name="svc")
    assert shown.exit_code == 0
    assert shown.output == CliRunner().invoke(main, [*path, "-h"], prog_name="svc").output


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["mpa"], "Did you mean 'mcp' or 'map'? See `svc -h`."),
        (["keys", "lst"], "Did you mean 'list'? See `svc keys -h`."),
        (["project-key", "st"], "Did you mean 'set'?"),
        (["recipe", "xyzzy"], 'There are "list", "show".'),
        (["help", "kes"], "Did you mean 'keys'?"),
        (["help", "keys", "lst"], "Did you mean 'list'?"),
        (["help", "map", "x"], "`svc map` has no commands."),
        (["keys", "list", "--jsn"], "Did you mean"),
    ],
)
def test_what_is_mistyped_is_answered_with_what_was_meant(arguments: list[str], meant: str) -> None:
    ended = CliRunner().invoke(main, arguments, prog_name="svc")
    assert ended.exit_code == 2 and meant in ended.stderr, ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(("settings", "red"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_errors_are_red_on_a_terminal_that_may_have_colours(
    settings: dict[str, str], red: bool
) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "svc.cli.main", "nonsense"]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    subprocess.run(command, stderr=theirs, env={**environment, **settings}, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 10_000)
    os.close(ours)
    assert (b"\x1b[31m" in shown) is red
    assert b"No such command" in shown
