"""`svc export`: decisions with their answers and labels out of a running server."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

import click

from svc import files, jsontext, limits
from svc.cli.asking import answered, leads_on
from svc.cli.filters import filter_options
from svc.cli.server import URL, Server, key_option
from svc.errors import SettingsError
from svc.phrases import reason

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
@click.option("-o", "output", metavar="FILE", default="-", help="- is standard output.")
@filter_options
@click.option("--url", metavar="URL", default=URL, show_default=True, help="The running server.")
@key_option
def command(
    project: str | None,
    kind: str,
    output: str,
    filters: Mapping[str, Any],
    url: str,
    api_key: str | None,
) -> None:
    """Write decisions with their answers and labels to a file.

    The newest stand first, and each answer has its confidence. A cell of the CSV that a spreadsheet
    would run begins with a '. Only a server that runs is asked, page by page; FILE is replaced once
    the last page has come.
    """
    given = {name: one for name, one in filters.items() if one not in (None, ())}
    query: dict[str, Any] = {**given, "format": kind, "limit": limits.AUDIT_PAGE[1]}
    if project is not None:
        query["project"] = project
    server = Server(url, api_key)
    with closing(server), _opened(output) as file:
        for page in _pages(server, query):
            file.write(_shown(page, file.isatty()).encode())


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Standard output, or what takes the place of a file in the end. Raises `SettingsError`."""
    if path == "-":
        yield sys.stdout.buffer
        return
    try:
        with files.replacing(Path(path)) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SettingsError(f"output {path!r}: {reason(error)}") from None


def _pages(server: Server, query: MutableMapping[str, Any]) -> Iterator[str]:
    """The pages of an export, from the newest decision on. Raises `SvcError`."""
    before: str | None = ""
    while before is not None:
        page = answered(server, "GET", f"/v1/export?{urlencode(query, doseq=True)}")
        yield page.text
        before = leads_on(before, page.next_before)
        query["before"] = before


def _shown(text: str, terminal: bool) -> str:
    """A page as it is, but for a terminal without the characters that it would obey."""
    return jsontext.visible(text.replace("\r\n", "\n")) if terminal else text
