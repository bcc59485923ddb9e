"""The options of commands that report on one question."""

from __future__ import annotations

import click

from svc import limits

question = click.option("--question", required=True, metavar="Q", help="The question's key.")
weeks = click.option(
    "--weeks",
    type=click.IntRange(*limits.DRIFT_WEEKS),
    default=limits.DRIFT_WEEKS_DEFAULT,
    show_default=True,
    metavar="N",
    help="How many weeks, the current one included.",
)
