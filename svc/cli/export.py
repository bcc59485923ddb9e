"""`svc export`: decisions with their answers and labels out of a running server."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import click

from svc import limits
from svc.cli.asking import answered
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
@click.option("--question", metavar="Q", help="Decisions that answered this question.")
@click.option("--answer", metavar="A", help="Those that answered it so.")
@click.option("--min-confidence", metavar="C", help="Those that were at least so sure of it.")
@click.option("--max-confidence", metavar="C", help="Those that were at most so sure of it.")
@click.option("--ref", metavar="REF", help="Decisions with this reference.")
@click.option("--tag", multiple=True, metavar="NAME:VALUE", help="Decisions with this tag.")
@click.option("--model", metavar="ID", help="Decisions that this model answered.")
@click.option("--from", "from_", metavar="TIME", help="From this moment on, such as 2026-11-22.")
@click.option("--to", metavar="TIME", help="Before this moment.")
@click.option("--labelled/--unlabelled", default=None, help="Decisions with labels, or without.")
@click.option("--url", metavar="URL", default=URL, show_default=True, help="The running server.")
@key_option
def command(kind: str, output: Any, url: str, api_key: str | None, **filters: Any) -> None:
    """Write decisions with their answers and labels to a file.

    The newest stand first, and each answer has its confidence. A cell of the CSV that a spreadsheet
    would run begins with a '. Only a server that runs is asked, page by page.
    """
    filters["from"] = filters.pop("from_")
    if (labelled := filters.pop("labelled")) is not None:
        filters["labelled"] = "true" if labelled else "false"
    given = {name: value for name, value in filters.items() if value not in (None, ())}
    query: dict[str, Any] = {**given, "format": kind, "limit": limits.AUDIT_PAGE[1]}
    server = Server(url, api_key)
    try:
        before: str | None = ""
        while before is not None:
            page = answered(server, "GET", f"/v1/export?{urlencode(query, doseq=True)}")
            output.write(page.text.encode())
            before = page.next_before
            query["before"] = before
    finally:
        server.close()
