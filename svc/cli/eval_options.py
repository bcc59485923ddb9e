"""The options of commands that ask about eval sets."""

from __future__ import annotations

import click

from svc.cli.batch_options import CONCURRENCY, MOST_AT_ONCE

folder = click.option(
    "--dir",
    "folder",
    default="evals",
    show_default=True,
    metavar="DIR",
    help="Folder of the eval sets.",
)
per_set = click.option(
    "--per-set",
    type=click.IntRange(min=1),
    metavar="N",
    help="Take N rows of a set, always the same ones.  [default: all]",
)
concurrency = click.option(
    "--concurrency",
    type=click.IntRange(1, MOST_AT_ONCE),
    default=CONCURRENCY,
    show_default=True,
    metavar="N",
    help="Rows under way at once.",
)
