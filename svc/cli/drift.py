"""`svc drift`: how the answers to a question change over the weeks."""

from __future__ import annotations

from collections.abc import Iterator

import click

from svc.cli import report_options
from svc.cli.remote import Remote, remote_options
from svc.cli.tables import decimal, echo_lines, json_option, table
from svc.jsontext import JsonObject
from svc.phrases import printable

_HEAD = ("week", "decisions", "confidence", "change", "mix change", "drift", "mix")
# The places of the columns that hold words.
_TEXT = {0, 5, 6}
# How many answers of a week's mix are shown.
_MIX = 3
_TESTS = ("mix", "confidence", "slow_mix", "slow_confidence")

EXAMPLES = """\b
Examples:
  svc drift --question refund --project support
  svc drift --question refund --weeks 26 --json | jq .test.alarm
"""


@click.command("drift", epilog=EXAMPLES)
@report_options.question
@report_options.weeks
@json_option
@remote_options
def command(question: str, weeks: int, as_json: bool, remote: Remote) -> None:
    """Show how the answers to a question change over the weeks.

    Each week stands with its mean confidence, how far that and the mix of answers moved, and its
    most frequent answers. The last line says whether the latest week is an alarm, of which 5% of
    years have one without cause.
    """
    answer = remote.get("/v1/drift", {"question": question, "weeks": weeks})
    echo_lines(answer.text if as_json else "\n".join(_lines(answer.value)))


def _lines(report: JsonObject) -> Iterator[str]:
    yield from table(_HEAD, [_row(week) for week in report["weeks"]], _TEXT)
    test = report["test"]
    if test is not None:
        moved = [name.replace("_", " ") for name in _TESTS if test[name] and test[name]["alarm"]]
        told = f"an alarm: {', '.join(moved)}" if test["alarm"] else "no alarm"
        yield ""
        yield printable(f"{test['week']}: {told}")


def _row(week: JsonObject) -> tuple[str, ...]:
    mix = sorted((week["mix"] or {}).items(), key=lambda pair: -pair[1])[:_MIX]
    return (
        week["week"],
        f"{week['decisions']:,}",
        decimal(week["confidence"]),
        decimal(week.get("confidence_change")),
        decimal(week.get("mix_change")),
        "yes" if week.get("drift") else "no",
        ", ".join(f"{name} {share:.0%}" for name, share in mix),
    )
