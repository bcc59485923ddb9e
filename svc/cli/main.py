"""The `svc` command; a command's module is imported only when that command runs."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from svc import __version__
from svc.cli.groups import Suggesting
from svc.cli.notices import FAILED, INTERRUPTED, coloured
from svc.errors import SvcError
from svc.phrases import printable, reason

log = logging.getLogger(__name__)

COMMANDS = {
    "help": "Show the help of a command.",
    "serve": "Serve the HTTP interface.",
    "keys": "Make, list and revoke API keys.",
    "budget": "Bound what calls to models may cost, in dollars.",
    "challenger": "Compare another model with the one that answers, on live decisions.",
    "project": "Bound what the decisions of a project fill in the database.",
    "retention": "Say for how long decisions of projects are kept.",
    "forget": "Erase everything about a subject from the database.",
    "hook": "Have a URL told of what happens to a project.",
    "project-key": "Set and remove the projects' own aggregator keys.",
    "spike": "Check in which way each model can be asked.",
    "recipe": "Show ready-made questions.",
    "lint": "Find faults in the wording of questions.",
    "probe": "Ask questions in other ways, and count the answers that flip.",
    "ask": "Answer questions about one text.",
    "map": "Answer questions about every line of a file.",
    "batch": "Hand a file to a running server, and fetch the answers later.",
    "decide": "Send a request to a running server.",
    "audit": "Show the latest decisions of a running server.",
    "calibration": "Show how far the probabilities of a question can be trusted.",
    "drift": "Show how the answers to a question change over the weeks.",
    "label": "Label decisions of a running server.",
    "shadow": "Compare answers with the labels that people gave.",
    "bench": "Score models on eval sets.",
    "report": "Print a saved bench run again, without asking any model.",
    "rates": "Tell how common each answer truly is, from all decisions and some labels.",
    "feedback": "Give true answers out of a file.",
    "export": "Write decisions with their answers and labels to a file.",
    "tune": "Find the best way to ask the question of an eval set.",
    "mcp": "Give MCP clients a tool that asks a running server.",
}


EXAMPLES = """\b
Examples:
  svc serve --demo
  svc ask --demo "My parcel never arrived, I want my money back!" -r sentiment
  svc map --demo -q support-triage -o answers.jsonl tickets.jsonl
"""


class _NobodyReads(Exception):
    """The reader of standard output has gone; click would end with a status of its own."""


@contextlib.contextmanager
def _noticing_readers() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise _NobodyReads from None


class Commands(Suggesting):
    """The commands by name: `some-name` is `command` in `svc/cli/some_name.py`."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """With no colours where the user wants none (https://no-color.org)."""
        with _noticing_readers():
            return super().make_context(*args, color=coloured(), **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _noticing_readers():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without any argument the help is wanted."""
        wanted = [] if ctx.resilient_parsing else ctx.help_option_names[-1:]
        return super().parse_args(ctx, args or wanted)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"svc.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command; in standalone mode every failure ends with one line and a status."""
        run: Callable[..., Any] = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        _prepare_streams()
        try:
            code = run(*args, standalone_mode=False, **extra)
        except click.ClickException as error:
            _fail(_advice(error), error.exit_code)
        except SvcError as error:
            _fail(error.message)
        except (click.Abort, KeyboardInterrupt):
            _fail("interrupted", INTERRUPTED)
        except _NobodyReads:
            # Who reads the output has seen enough, as `head` has after some lines.
            _write_to_nobody()
            sys.exit(0)
        except OSError as error:
            _fail(_words(error))
        except UnicodeEncodeError as error:
            log.debug("a command failed", exc_info=error)
            _fail(_not_encoded(sys.argv[1:]))
        except Exception as error:
            log.debug("a command failed", exc_info=error)
            _fail(f"svc itself failed, which is a bug ({type(error).__name__})")
        sys.exit(code if isinstance(code, int) else 0)


def _advice(error: click.ClickException) -> str:
    """Click's message, and how to get help."""
    message = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    # Click answers a group without a command with its whole help.
    if message == error.ctx.get_help():
        message = "a command is missing."
    if not message.endswith((".", "?")):
        message += "."
    return f"{message} See `{error.ctx.command_path} -h`."


def _words(error: OSError) -> str:
    """The system's error, with the file that it is about."""
    name = f"{error.filename!r}: " if error.filename else ""
    return name + reason(error)


def _not_encoded(arguments: Sequence[str]) -> str:
    """What to say of a text that has no bytes in UTF-8, as an argument may not have them."""
    for number, argument in enumerate(arguments, 1):
        if argument != argument.encode("utf-8", "ignore").decode():
            return f"argument {number} is not UTF-8"
    return "svc itself failed, which is a bug (UnicodeEncodeError)"


def _fail(message: str, status: int = FAILED) -> NoReturn:
    """Print one line on standard error and exit."""
    with contextlib.suppress(OSError):
        head = click.style("Error:", fg="red", bold=True)
        text = printable(" ".join(message.split()))
        click.echo(f"{head} {text}", err=True, color=coloured())
    try:
        sys.stdout.flush()
    except OSError:
        # The interpreter would try again when it exits, and print an error.
        _write_to_nobody()
    sys.exit(status)


def _prepare_streams() -> None:
    """Make every text printable, because results may have been paid for.

    Where the starting process closed a stream, messages are lost, but results are an error.
    """
    for name, mode in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.open(os.devnull, mode), "w"))  # noqa: SIM115
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal's encoding lacks becomes a question mark.
            stream.reconfigure(errors="replace")


def _write_to_nobody() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def main() -> None:
    """Answer typed questions about a piece of input with language models."""


if __name__ == "__main__":
    main(prog_name="svc")
