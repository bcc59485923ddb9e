"""`svc calibration`: how far the probabilities of a question can be trusted."""

from __future__ import annotations

from collections.abc import Iterator

import click

from svc.cli import report_options
from svc.cli.remote import Remote, remote_options
from svc.cli.tables import decimal, echo_lines, json_option, percent, table
from svc.jsontext import JsonObject
from svc.phrases import printable

_FIGURES = ("", "accuracy", "ECE", "Brier", "automated", "right then")
_PROMISES = ("promise", "from confidence", "automated", "why not")
# The places of the columns that hold words.
_WORDS = {0, 3}

EXAMPLES = """\b
Examples:
  svc calibration --question refund --project support
  svc calibration --question refund --json | jq .thresholds
"""


@click.command("calibration", epilog=EXAMPLES)
@report_options.question
@json_option
@remote_options
def command(question: str, as_json: bool, remote: Remote) -> None:
    """Show how far the probabilities of a question can be trusted.

    The first table has the figures of labelled answers before and after calibration: accuracy,
    how far probabilities are off (ECE, Brier), the share with a confidence of at least 0.9, and how
    many of these are right. The second one says from which confidence on answers are right at
    least so often, with 95% certainty.
    """
    answer = remote.get("/v1/calibration", {"question": question})
    echo_lines(answer.text if as_json else "\n".join(_lines(answer.value)))


def _lines(report: JsonObject) -> Iterator[str]:
    effect = "no calibrator is in effect" if report["calibrator"] is None else "calibrated"
    where = f"{report['question']} in {report['project']}"
    yield printable(f"{where}: {report['labels']:,} labels, {effect}")
    yield ""
    yield from table(_FIGURES, [_figures(name, report[name]) for name in ("before", "after")])
    yield ""
    yield from table(_PROMISES, [_promise(one) for one in report["thresholds"]], _WORDS)


def _figures(name: str, found: JsonObject) -> tuple[str, ...]:
    return (
        name,
        percent(found["accuracy"]),
        decimal(found["ece"]),
        decimal(found["brier"]),
        percent(found["automated"]),
        percent(found["accuracy_when_automated"]),
    )


def _promise(one: JsonObject) -> tuple[str, ...]:
    return (
        f"{one['target']:.0%} right",
        # Whole, since a lower one may be no promise.
        "-" if one["min_confidence"] is None else f"{one['min_confidence']:g}",
        percent(one["automated"]),
        one.get("reason") or "",
    )
