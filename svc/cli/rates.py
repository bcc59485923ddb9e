"""`svc rates`: how common each answer to a question truly is."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from svc.cli import database, report_options
from svc.cli.tables import decimal, echo_json, percent, span, table
from svc.jsontext import JsonObject
from svc.learning import RateReporter
from svc.phrases import printable
from svc.schemas import DEFAULT_PROJECT
from svc.store import Labels, Periods, QuestionVersions

_HEAD = ("answer", "share", "95% interval", "naive", "labels alone", "power")

EXAMPLES = """\b
Examples:
  svc rates --question refund --project support
  svc rates --question refund --weeks 1 --json | jq '.rates[].estimate'
"""


@click.command("rates", epilog=EXAMPLES)
@report_options.question
@click.option("--project", default=DEFAULT_PROJECT, show_default=True, metavar="P")
@report_options.weeks
@click.option("--json", "as_json", is_flag=True, help="Print what GET /v1/rates answers.")
@database.option
def command(question: str, project: str, weeks: int, as_json: bool, db: str) -> None:
    """Tell how common each answer truly is, from all decisions and some labels.

    The share of each answer in the last weeks stands with its 95% interval beside the naive share,
    which believes every answer, and the share among the labels alone. The labels have to be drawn
    by chance. Answers that rules gave are left out. No server needs to run.
    """
    database.check_name("--project", project)
    with database.opened(db) as opened:
        reporter = RateReporter(QuestionVersions(opened), Labels(opened), Periods(opened))
        report = reporter.report(project, question, weeks)
    if as_json:
        echo_json(report)
    else:
        click.echo("\n".join(_lines(report)))


def _lines(report: JsonObject) -> list[str]:
    day = f"{datetime.fromtimestamp(report['since'] / 1000, UTC):%Y-%m-%d}"
    head = (
        f"{report['question']} in {report['project']} since {day}: "
        f"{report['decisions']:,} decisions, {report['labels']:,} labels"
    )
    cut = ["There are more decisions: these are the most recent ones."] if report["cut"] else []
    meaning = report["sampling"]["meaning"] or "Without labels only the naive share is known."
    return [
        printable(head),
        *cut,
        "",
        *table(_HEAD, [_row(one) for one in report["rates"]]),
        "",
        meaning,
    ]


def _row(rate: JsonObject) -> tuple[str, ...]:
    alone = rate["labels_alone"]
    return (
        rate["option"],
        percent(rate["estimate"]),
        _span(rate),
        percent(rate["naive"]),
        _span(alone),
        decimal(rate["power"]),
    )


def _span(interval: JsonObject | None) -> str:
    """The ends of an interval, or a dash."""
    if interval is None or interval["low"] is None:
        return "-"
    return span((interval["low"], interval["high"]))
