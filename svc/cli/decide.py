"""`svc decide`: a whole request to a running server."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from svc import jsontext
from svc.batch import STANDARD
from svc.cli.answer_table import answer_table
from svc.cli.completing import file_names
from svc.cli.remote import Remote, remote_options
from svc.cli.tables import json_option
from svc.errors import ApiError, SettingsError
from svc.jsontext import JsonObject
from svc.phrases import reason
from svc.schemas import load_questions

EXAMPLES = """\b
Examples:
  svc decide request.json
  svc decide --json - < request.json | jq .answers
  svc decide --url https://decide.example.com --project support request.json
"""


@click.command("decide", epilog=EXAMPLES)
@click.argument("file", metavar="FILE", shell_complete=file_names)
@json_option
@remote_options
def command(file: str, as_json: bool, remote: Remote) -> None:
    """Send a request to a running server.

    FILE is the body of POST /v1/decide as JSON, and - reads it from standard input. The table has a row for each
    question: its answer, how probable it is, and what else was likely.
    """
    body = _body(file)
    if remote.project is not None:
        body["project"] = remote.project
    answer = remote.post("/v1/decide", jsontext.dumps(body).encode("utf-8", "replace"))
    if as_json:
        click.echo(answer.text.rstrip("\n"))
    else:
        click.echo(
            "\n".join(answer_table(load_questions(body["questions"]), answer.value["answers"]))
        )
        click.echo(f"\nid: {answer.value['id']}")


def _body(file: str) -> JsonObject:
    try:
        data = sys.stdin.buffer.read() if file == STANDARD else Path(file).read_bytes()
        body = jsontext.loads(data, "the request")
    except OSError as error:
        raise SettingsError(f"{file!r}: {reason(error)}") from None
    except ApiError as error:
        raise SettingsError(f"{file!r}: {error.message}") from None
    if not isinstance(body, dict) or "questions" not in body:
        raise SettingsError(f"{file!r}: must be an object with state and questions")
    return body
