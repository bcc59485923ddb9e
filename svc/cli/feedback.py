"""`svc feedback`: the labels of a file to a running server."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import click

from svc import jsontext, limits
from svc.cli import label_files
from svc.cli.asking import answered, leads_on, understanding
from svc.cli.label_files import Line
from svc.cli.notices import FAILED, notice
from svc.cli.server import URL, Server, key_option
from svc.jsontext import JsonObject
from svc.questions import Question, from_definition

# The lines of one request, so that it takes about a fifth of a second.
AT_ONCE = 1_000

EXAMPLES = """\b
Examples:
  svc feedback labels.csv --project support
  svc feedback labels.jsonl --url https://decide.example.com
"""


@click.command("feedback", epilog=EXAMPLES)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--project", metavar="P", help="The project of the refs and the questions.")
@click.option("--url", metavar="URL", default=URL, show_default=True, help="The running server.")
@key_option
def command(file: Path, project: str | None, url: str, api_key: str | None) -> None:
    """Give true answers out of a file.

    A file named .csv has columns, any other a JSON object in each line: id or ref, which names the
    decision, and one of each question's key, for example

    \b
      ref,refund,queue
      ticket-17,true,billing

    An empty cell gives no label. Columns sampled and chance say how the decision came to be
    labelled. A ref that several decisions have means the newest one. Lines that are wrong are told
    on standard error, and all others are taken; the exit status is 0 when all were. To run it again
    does no harm: a label replaces the one before.
    """
    with understanding(url), closing(Server(url, api_key)) as server:
        lines = list(label_files.read(file, _questions(server, project)))
        taken, wrong = 0, 0
        for part in _parts(lines):
            answer = _send(server, project, part)
            taken += answer["taken"]
            for line, message in sorted(_errors(part, answer)):
                wrong += 1
                notice(f"line {line}: {message}")
    click.echo(f"{taken:,} labels of {len(lines):,} lines taken, {wrong:,} errors")
    sys.exit(FAILED if wrong else 0)


def _questions(server: Server, project: str | None) -> dict[str, Question]:
    """The questions of a project, which say what the cells of a table stand for."""
    found: dict[str, Question] = {}
    after: str | None = ""
    while after is not None:
        place = "" if project is None else f"&project={quote(project, safe='')}"
        path = f"/v1/questions?after={quote(after, safe='')}{place}"
        page = answered(server, "GET", path).value
        for one in page["questions"]:
            found[one["question"]] = from_definition(jsontext.dumps(one["wording"]))
        after = leads_on(after, page["next_after"])
    return found


def _parts(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines that go into one request together."""
    part: list[Line] = []
    labels = 0
    for line in lines:
        given = (line.value or {}).get("labels") if isinstance(line.value, dict) else None
        count = len(given) if isinstance(given, dict) else 0
        if part and (len(part) == AT_ONCE or labels + count > limits.BULK_LABELS):
            yield part
            part, labels = [], 0
        part.append(line)
        labels += count
    if part:
        yield part


def _send(server: Server, project: str | None, part: list[Line]) -> JsonObject:
    sound = [line.value for line in part if not line.error]
    if not sound:
        return {"taken": 0, "errors": []}
    body: JsonObject = {"labels": sound}
    if project is not None:
        body["project"] = project
    answer: JsonObject = answered(
        server, "POST", "/v1/feedback/bulk", jsontext.dumps(body).encode()
    ).value
    return answer


def _errors(part: list[Line], answer: JsonObject) -> Iterator[tuple[int, str]]:
    """The errors by the numbers of the lines in the file."""
    yield from ((line.number, line.error) for line in part if line.error)
    numbers = [line.number for line in part if not line.error]
    for error in answer["errors"]:
        field = f"{error['field']}: " if error["field"] else ""
        yield numbers[error["line"] - 1], f"{field}{error['message']}"
