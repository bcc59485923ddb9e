"""`svc decide`: a whole request to a running server."""

from __future__ import annotations

from typing import BinaryIO

import click

from svc import jsontext
from svc.cli.answer_table import answer_table
from svc.cli.completing import file_names
from svc.cli.remote import Remote, remote_options
from svc.cli.tables import echo_lines, json_option
from svc.jsontext import JsonObject
from svc.phrases import printable
from svc.schemas import load_questions

EXAMPLES = """\b
Examples:
  svc decide request.json
  svc decide --json - < request.json | jq .answers
  svc decide --url https://decide.example.com --project support request.json
"""


@click.command("decide", epilog=EXAMPLES)
@click.argument("file", metavar="FILE", type=click.File("rb"), shell_complete=file_names)
@json_option
@remote_options
def command(file: BinaryIO, as_json: bool, remote: Remote) -> None:
    """Send a request to a running server.

    FILE is the body of POST /v1/decide as JSON, and - reads it from standard input. The table has a
    row for each question: its answer, how probable it is, and what else was likely.
    """
    body = _body(file)
    if remote.project is not None:
        body["project"] = remote.project
    answer = remote.post("/v1/decide", jsontext.dumps(body).encode("utf-8", "replace"))
    if as_json:
        echo_lines(answer.text.rstrip("\n"))
    else:
        click.echo(
            "\n".join(answer_table(load_questions(body["questions"]), answer.value["answers"]))
        )
        click.echo()
        click.echo(printable(f"id: {answer.value['id']}"))


def _body(file: BinaryIO) -> JsonObject:
    body = jsontext.loads(file.read(), "the request")
    if not isinstance(body, dict) or "questions" not in body:
        raise click.ClickException("the request must be an object with state and questions")
    return body
