"""Groups of commands that help who mistypes one."""

from __future__ import annotations

from difflib import get_close_matches

import click

from svc.phrases import listed, visible


class Suggesting(click.Group):
    """A group that answers an unknown command with the likely one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        mistyped = args[0] not in known and not args[0].startswith("-")
        if mistyped and not ctx.resilient_parsing:
            close = " or ".join(map(repr, get_close_matches(args[0], known)))
            meant = f"Did you mean {close}?" if close else f"There are {listed(known)}."
            ctx.fail(f"No such command {visible(args[0])!r}. {meant}")
        return super().resolve_command(ctx, args)
