"""`svc help`: the help of a command, as `svc COMMAND -h` shows it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from svc.cli.completing import command_names

EXAMPLES = """\b
Examples:
  svc help
  svc help keys create
"""


@click.command("help", epilog=EXAMPLES)
@click.argument("names", nargs=-1, metavar="[COMMAND]...", shell_complete=command_names)
@click.pass_context
def command(ctx: click.Context, names: Sequence[str]) -> None:
    """Show the help of a command.

    Without COMMAND it lists the commands.
    """
    outer = ctx.find_root()
    for name in names:
        group = outer.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"`{outer.command_path}` has no commands.")
        found, inner, _ = group.resolve_command(outer, [name])
        assert inner is not None
        outer = click.Context(inner, parent=outer, info_name=found)
    click.echo(outer.get_help())
