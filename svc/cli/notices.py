"""What a command says on standard error beside its work."""

from __future__ import annotations

import contextlib

import click


def notice(text: str) -> None:
    """A line, unless nobody takes it: the work is done all the same."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
