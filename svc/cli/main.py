"""The `svc` command; a command's module is imported only when that command runs."""

from __future__ import annotations

from importlib import import_module

import click

from svc import __version__
from svc.errors import SvcError

COMMANDS = {
    "serve": "Serve the HTTP interface.",
    "keys": "Make, list and revoke API keys.",
    "project-key": "Set and remove the projects' own aggregator keys.",
    "map": "Answer questions about every line of a file.",
    "shadow": "Compare answers with the labels that people gave.",
}


class Commands(click.Group):
    """The commands by name: `some-name` is `command` in `svc/cli/some_name.py`."""

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

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SvcError as error:
            raise click.ClickException(error.message) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def main() -> None:
    """Answer typed questions about a piece of input with language models."""


if __name__ == "__main__":
    main(prog_name="svc")
