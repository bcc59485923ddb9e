"""`svc ask`: questions about one text."""

from __future__ import annotations

import sys

import click

from svc import inprocess, jsontext
from svc.cli.answer_table import echo_answers
from svc.cli.completing import question_files, recipe_names
from svc.cli.plans import ModelOptions, model_options
from svc.cli.question_files import Named, read_named, read_recipe
from svc.cli.remote import Remote, server_options
from svc.jsontext import JsonObject
from svc.schemas import load_decision

# The argument that stands for standard input.
_STANDARD = "-"

EXAMPLES = """\b
Examples:
  svc ask --demo "My parcel never arrived, I want my money back!" -r sentiment
  svc ask --model @openai/gpt-4.1-mini -q questions.json - < mail.txt
  svc ask --url http://127.0.0.1:7777 --json "Thank you!" -r sentiment | jq .answers
"""


@click.command("ask", epilog=EXAMPLES)
@click.argument("text")
@click.option(
    "-r",
    "--recipe",
    metavar="NAME",
    shell_complete=recipe_names,
    help="Ask the questions of this recipe.",
)
@click.option(
    "-q",
    "--questions",
    metavar="FILE",
    shell_complete=question_files,
    help="Ask those of a file or, without one, of a recipe.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what POST /v1/decide answers.")
@model_options
@server_options
def command(
    text: str,
    recipe: str | None,
    questions: str | None,
    as_json: bool,
    asking: ModelOptions,
    remote: Remote | None,
) -> None:
    """Answer questions about one text.

    TEXT is the text itself, and - reads it from standard input. The table has a row for each
    question: its answer, how probable it is, and what else was likely. (unsure) stands behind an
    answer that is less probable than its question asks for.

    `svc recipe list` shows the recipes. Without --url no server needs to run, and nothing is kept.
    """
    named = _named(recipe, questions)
    fields = {**asking.fields, "questions": named.fields, "state": _text(text)}
    decision = _here(fields, asking.demo) if remote is None else _there(fields, remote)
    echo_answers(named.questions, decision, as_json)


def _named(recipe: str | None, questions: str | None) -> Named:
    if recipe is not None and questions is None:
        return read_recipe(recipe)
    if questions is not None and recipe is None:
        return read_named(questions)
    raise click.UsageError("Give either -r with the name of a recipe or -q with questions.")


def _text(argument: str) -> str:
    if argument != _STANDARD:
        return argument
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        message = f"standard input is not UTF-8 (byte {error.start})"
        raise click.ClickException(message) from None


def _here(fields: JsonObject, demo: bool) -> JsonObject:
    with inprocess.engine(demo, 1) as engine:
        return engine.decide(load_decision(engine.settle(fields))).response()


def _there(fields: JsonObject, remote: Remote) -> JsonObject:
    of_project = {} if remote.project is None else {"project": remote.project}
    body = jsontext.dumps({**fields, **of_project}).encode("utf-8", "replace")
    decision: JsonObject = remote.post("/v1/decide", body).value
    return decision
