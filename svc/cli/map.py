"""`svc map`: the same questions about every line of a file."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from svc.batch import AnswerLine, LineAnswer
from svc.cli import batches
from svc.cli.batches import Batch, batch_options
from svc.cli.plans import ModelOptions, model_options
from svc.inprocess import InProcess
from svc.schemas import DecisionRequest, with_state

EXAMPLES = """\b
Examples:
  svc map --demo -q questions.json -o answers.jsonl tickets.jsonl
  svc map --model A,B --concurrency 64 -q questions.json -o answers.jsonl tickets.jsonl
  svc map --cascade A,B --escalate-below 0.9 -q questions.json -o answers.jsonl tickets.jsonl
  jq -c .body mails.jsonl | svc map -q questions.json -o - - | jq .answers
"""


@click.command("map", epilog=EXAMPLES)
@batch_options
@model_options
def command(batch: Batch, asking: ModelOptions) -> None:
    """Answer questions about every line of a file.

    Each line of INPUT is one JSON state, - reads standard input. Each line of the output is, in
    the same order, its decision as POST /v1/decide returns it, with the number of the line; or,
    where the line is at fault or no model answered, the error:

    \b
      {"line": 1, "id": "dec_...", "model": ..., "answers": {...}}
      {"line": 2, "error": {"type": "invalid_json", "message": "..."}}

    The same command goes on after any interruption, behind the last line written. Another input,
    model or questions than those that began the output, as FILE.run.json records them, are
    refused; what is piped in is told apart by its first line only. A spent SVC_DAILY_LIMIT, which
    counts the calls of one run, or models that answer none of ten lines in a row, or of the last
    ones, stop the run with those lines unwritten.

    The exit status is 0 when every line was answered, 1 when not, 2 for a wrong command line and
    130 after Ctrl-C. SVC_LOG_LEVEL=warning shows what providers said of failed calls.
    """
    batches.run(batch, asking, _answering, command="map")


def _answering(engine: InProcess, request: DecisionRequest) -> AnswerLine:
    return partial(_answer, engine, request)


def _answer(engine: InProcess, request: DecisionRequest, state: Any) -> LineAnswer:
    decision = engine.decide(with_state(request, state))
    return LineAnswer(decision.response(), decision.cost_usd)
