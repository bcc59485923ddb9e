"""`svc map`: the same questions about every line of a file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import click

from svc.batch import AnswerLine, LineAnswer, Record
from svc.cli import batches, budget_options
from svc.cli.batch_options import Batch, batch_options
from svc.cli.plans import ModelOptions, model_options
from svc.cli.remote import Remote, server_options
from svc.cli.server_lines import answerer
from svc.inprocess import InProcess, PaidBy
from svc.schemas import DecisionRequest, with_state

EXAMPLES = """\b
Examples:
  svc map --demo -q support-triage -o answers.jsonl tickets.jsonl
  svc map --demo -q support-triage --column body --ref-column id -o answers.jsonl tickets.csv
  svc map --model A,B --concurrency 64 -q questions.json -o answers.jsonl tickets.jsonl
  svc map --cascade A,B --escalate-below 0.9 -q questions.json -o answers.jsonl tickets.jsonl
  svc map --provider-batch --model @openai/gpt-4.1-mini -q questions.json -o a.jsonl tickets.jsonl
  svc map --url http://127.0.0.1:7777 -q questions.json -o answers.jsonl tickets.jsonl
  jq -c .body mails.jsonl | svc map -q questions.json -o - - | jq .answers
"""


@click.command("map", epilog=EXAMPLES)
@batch_options
@model_options
@server_options
@click.option(
    "--provider-batch",
    "at_provider",
    is_flag=True,
    help="Ask in batches of the provider, within a day and at its lower price.",
)
@budget_options.paid_by_options
def command(
    batch: Batch,
    asking: ModelOptions,
    remote: Remote | None,
    at_provider: bool,
    paid_by: PaidBy | None,
) -> None:
    """Answer questions about every line of a file.

    Each line of INPUT is one JSON state, and - reads standard input. Of a file named .csv or .tsv
    each row is one, whose columns the first line names, and of a file named .txt each line of text;
    --format says it of other names. --column chooses the columns that are asked about: one is a
    text, several are an object. Each line of the output is, in the same order, its decision as
    POST /v1/decide returns it, with the number of the line, which in a table is that of the row
    below the names of the columns; or an error, where the line is invalid or no model answered:

    \b
      {"line": 1, "id": "dec_...", "model": ..., "answers": {...}}
      {"line": 2, "error": {"type": "invalid_json", "message": "..."}}

    After any interruption the same command continues behind the last line written, and takes what
    was answered behind a slow line from FILE.ahead, unless INPUT is a pipe. It refuses
    another input, model or questions than those that the output was begun with, which
    FILE.run.json records; of input from a pipe only the first line is compared. The run stops when
    SVC_DAILY_LIMIT is reached, which counts the calls of one run, and when the models answer none
    of ten lines in a row or none of the last lines. These lines are not written.

    --retry-failed keeps its new results in FILE.retried until they are in their places, and goes on
    after any interruption as well.

    The exit status is 0 when every line was answered, 1 when not, 2 for a wrong command line and
    130 after Ctrl-C. SVC_LOG_LEVEL=warning shows what providers said of failed calls.

    With --url a running server answers the lines, with its models, keys and calibrators, and keeps
    each decision: it can be labelled by its id. Rates of the key and of providers are waited for,
    and so is a server that is being started again, for a minute. The result is the same. A line
    whose answer did not come is sent again under its Idempotency-Key, and decided once.

    With --budget-db the calls count against the budgets in dollars that svc budget has set for the
    project there, beside those of a server that runs on it; the run stops when one is spent.

    With --provider-batch the provider of each model answers in batches, which may take a day and
    cost less, mostly half. The replies are collected in FILE.batch until the end, and the same
    command goes on after any interruption.
    """
    batched = batch if at_provider else None
    batches.run(batch, answerer(asking, _answering, remote, batched, paid_by), command="map")


def _answering(engine: InProcess, request: DecisionRequest) -> AnswerLine:
    return partial(_answer, engine, request)


def _answer(engine: InProcess, request: DecisionRequest, record: Record) -> LineAnswer:
    decision = engine.decide(replace(with_state(request, record.value), ref=record.ref))
    return LineAnswer(decision.response(), decision.cost_usd)
