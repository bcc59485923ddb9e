"""`svc export`: decisions with their answers and labels out of a running server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import click

from svc import jsontext, limits
from svc.cli.asking import answered, leads_on
from svc.cli.filters import filter_options
from svc.cli.server import URL, Server, key_option

EXAMPLES = """\b
Examples:
  svc export --project support -o decisions.csv
  svc export --project support --question refund --labelled --format jsonl -o labels.jsonl
"""


@click.command("export", epilog=EXAMPLES)
@click.option("--project", metavar="P", help="The project.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "jsonl"]),
    default="csv",
    show_default=True,
    help="CSV with a row for each answer, or a JSON object for each decision.",
)
@click.option("-o", "output", type=click.File("wb"), default="-", help="- is standard output.")
@filter_options
@click.option("--url", metavar="URL", default=URL, show_default=True, help="The running server.")
@key_option
def command(
    project: str | None,
    kind: str,
    output: Any,
    filters: Mapping[str, Any],
    url: str,
    api_key: str | None,
) -> None:
    """Write decisions with their answers and labels to a file.

    The newest stand first, and each answer has its confidence. A cell of the CSV that a spreadsheet
    would run begins with a '. Only a server that runs is asked, page by page.
    """
    given = {name: one for name, one in filters.items() if one not in (None, ())}
    query: dict[str, Any] = {**given, "format": kind, "limit": limits.AUDIT_PAGE[1]}
    if project is not None:
        query["project"] = project
    server = Server(url, api_key)
    try:
        before: str | None = ""
        while before is not None:
            page = answered(server, "GET", f"/v1/export?{urlencode(query, doseq=True)}")
            output.write(_shown(page.text, output.isatty()).encode())
            before = leads_on(before, page.next_before)
            query["before"] = before
    finally:
        server.close()


def _shown(text: str, terminal: bool) -> str:
    """A page as it is, but for a terminal without the characters that it would obey."""
    return jsontext.visible(text.replace("\r\n", "\n")) if terminal else text
