"""The report of `svc challenger report`."""

from __future__ import annotations

from collections.abc import Callable

from svc import limits
from svc.cli.tables import decimal, milliseconds, percent, table
from svc.engine.challenged_request import worded
from svc.learning import Comparison, compared
from svc.questions import from_definition
from svc.stats import Interval
from svc.store import ChallengerRecord, Challengers, Database, QuestionVersions

_HEAD = ("", "answers now", "challenger", "difference", "95% at all looks")

_VERDICTS = {
    "better": "The challenger is right more often; `svc challenger promote` switches.",
    "worse": "The challenger is right less often.",
    "open": "The labels have not told yet which one is right more often.",
}


def comparison(opened: Database, record: ChallengerRecord) -> Comparison:
    """A challenger and what callers got. Raises `StorageError`."""
    challenger = record.challenger
    pairs = Challengers(opened).pairs(challenger.id, limits.CHALLENGER_PAIRS)
    version = QuestionVersions(opened).by_digest(challenger.digest)
    # A foreign key makes sure that it is there.
    assert version is not None
    question = from_definition(version.definition)
    other = question if challenger.wording is None else worded(challenger.wording)
    return compared(pairs, question, other)


def report(record: ChallengerRecord, found: Comparison, asked_still: bool) -> list[str]:
    """Lines that compare both sides."""
    lines = [
        f"{found.asked:,} decisions were also asked of the challenger, which did not answer "
        f"{found.failed:,}.",
        f"{found.labelled:,} of them have labels.",
        f"{record.dropped:,} found no room in the queue.",
        f"{record.refused:,} could not be given to it: its budget was spent, they were of privacy: "
        "strict, its provider or price is not known, or the project was full.",
    ]
    if not asked_still:
        lines.append("Callers ask the question in another wording now, so it is asked no more.")
    rows = [*_of_labels(found), *_of_calls(found)]
    return [*lines, "", *table(_HEAD, rows, {0}), "", _VERDICTS[found.verdict]]


def _of_labels(found: Comparison) -> list[tuple[str, ...]]:
    one, other = found.present, found.challenger
    return [
        ("accuracy", percent(one.accuracy), percent(other.accuracy), *_points(found.accuracy)),
        ("log-loss", decimal(one.log_loss), decimal(other.log_loss), *_plain(found.log_loss)),
        ("Brier score", decimal(one.brier), decimal(other.brier), *_plain(found.brier)),
        ("calibration error", decimal(one.ece), decimal(other.ece), "", ""),
    ]


def _of_calls(found: Comparison) -> list[tuple[str, ...]]:
    one, other = found.present, found.challenger
    return [
        ("dollars for 1,000", _dollars(one.cost_usd), _dollars(other.cost_usd), "", ""),
        ("median time", milliseconds(one.latency_ms), milliseconds(other.latency_ms), "", ""),
        (
            "time of 95%",
            milliseconds(one.latency_ms_95),
            milliseconds(other.latency_ms_95),
            "",
            "",
        ),
    ]


def _points(interval: Interval) -> tuple[str, str]:
    return _shown(interval, lambda share: f"{100 * share:+.1f}%")


def _plain(interval: Interval) -> tuple[str, str]:
    return _shown(interval, lambda value: f"{value:+.3f}")


def _shown(interval: Interval, text: Callable[[float], str]) -> tuple[str, str]:
    return text(interval.estimate), f"{text(interval.low)} to {text(interval.high)}"


def _dollars(each: float | None) -> str:
    return "-" if each is None else f"${1_000 * each:,.4f}"
