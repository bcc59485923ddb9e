"""`svc audit`: the latest decisions of a running server."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

import click

from svc import limits
from svc.cli.filters import filter_options
from svc.cli.remote import Remote, remote_options
from svc.cli.tables import echo_lines, json_option, table

# How many decisions are shown unless the command says otherwise.
SHOWN = 20
# The columns of `GET /v1/export` that are shown.
_COLUMNS = ("created_at", "id", "ref", "model", "question", "answer", "confidence", "label")
_CONFIDENCE = 6
_HEAD = ("at", *_COLUMNS[1:])
_TEXT = set(range(len(_COLUMNS))) - {_CONFIDENCE}

EXAMPLES = """\b
Examples:
  svc audit
  svc audit --project support --question refund --unlabelled --limit 50
  svc audit --ref t-17 --json | jq '.entries[0].answers'
"""


@click.command("audit", epilog=EXAMPLES)
@filter_options
@click.option(
    "--limit",
    type=click.IntRange(*limits.AUDIT_PAGE),
    default=SHOWN,
    show_default=True,
    metavar="N",
    help="How many decisions.",
)
@click.option("--before", metavar="ID", help="Those before this decision.")
@json_option
@remote_options
def command(
    filters: Mapping[str, Any], limit: int, before: str | None, as_json: bool, remote: Remote
) -> None:
    """Show the latest decisions of a running server.

    The newest stand first, with a row for each answer: what was answered, how sure it is, and the
    label, where it has one. --json prints what GET /v1/audit answers; svc export writes all
    decisions to a file.
    """
    query = {**filters, "limit": limit, "before": before}
    if as_json:
        echo_lines(remote.get("/v1/audit", query).text)
        return
    page = remote.get("/v1/export", {**query, "format": "csv"})
    rows = [[row[name] for name in _COLUMNS] for row in csv.DictReader(io.StringIO(page.text))]
    click.echo("\n".join(table(_HEAD, [_shown(*row) for row in rows], _TEXT)))


def _shown(created_at: str, *cells: str) -> tuple[str, ...]:
    """A row with its moment to the second."""
    return created_at[:19].replace("T", " "), *cells
