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

# No interval for it that holds at all looks is known.
_NO_INTERVAL = ("", "none, see Brier score")

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
        f"{found.labelled:,} of them have labels, {found.queued:,} of these from the review queue, "
        "which count by the chance to be handed out.",
        f"{record.dropped:,} found no room in the queue.",
        f"{record.refused:,} could not be given to it: its budget was spent, they were of privacy: "
        "strict, its provider or price is not known, or the project was full.",
    ]
    if not asked_still:
        lines.append("Callers ask the question in another wording now, so it is asked no more.")
    rows = [*_of_labels(found), *_of_calls(found)]
    caps = (
        f"In the differences of dollars and of the mean time at most ${found.cost_cap_usd:.5f} and "
        f"{found.latency_cap_ms:,.0f} ms of one decision count."
    )
    return [*lines, "", *table(_HEAD, rows, {0}), "", caps, _VERDICTS[found.verdict]]


def _of_labels(found: Comparison) -> list[tuple[str, ...]]:
    one, other = found.present, found.challenger
    return [
        ("accuracy", percent(one.accuracy), percent(other.accuracy), *_points(found.accuracy)),
        ("log-loss", decimal(one.log_loss), decimal(other.log_loss), *_plain(found.log_loss)),
        ("Brier score", decimal(one.brier), decimal(other.brier), *_plain(found.brier)),
        ("calibration error", decimal(one.ece), decimal(other.ece), *_NO_INTERVAL),
    ]


def _of_calls(found: Comparison) -> list[tuple[str, ...]]:
    one, other = found.present, found.challenger
    cost = (_dollars(one.cost_usd), _dollars(other.cost_usd))
    times = (
        ("mean time", "mean_latency_ms", _shown(found.latency_ms, _milliseconds)),
        ("median time", "latency_ms", ("", "")),
        ("time of 95%", "latency_ms_95", ("", "")),
    )
    return [
        ("dollars for 1,000", *cost, *_shown(found.cost_usd, _signed_dollars)),
        *(
            (head, milliseconds(getattr(one, name)), milliseconds(getattr(other, name)), *differs)
            for head, name, differs in times
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


def _signed_dollars(each: float) -> str:
    return f"{'-' if each < 0 else '+'}${abs(1_000 * each):,.4f}"


def _milliseconds(value: float) -> str:
    return f"{value:+,.1f} ms"
