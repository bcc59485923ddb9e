"""What `svc probe` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from dataclasses import asdict

from svc import jsontext
from svc.cli.probe_inputs import Questioned
from svc.cli.tables import decimal, percent, table
from svc.evals import ProbeJob, Steadiness, Told, WordingProbe, calls_text, steadiness_of
from svc.phrases import printable

_HEAD = ("question", "change", "compared", "flips", "agreement", "mean spread", "widest", "failed")
# The places of the columns that hold words.
_TEXT = {0, 1}
# How many flips of a question are told, those with the widest spread.
_FLIPS = 3
# How many different failures are told.
_MESSAGES = 5
Answers = Sequence[tuple[ProbeJob, Told]]


def announcement(about: Questioned, ways: Sequence[WordingProbe], calls: int) -> str:
    """What it will take."""
    asked = f"{_counted('question', about.questions)} in {_counted('way', ways)}"
    states = _counted("state", about.states)
    return f"{about.name}: {asked}, {states}; at most {calls_text(calls)}"


def _counted(what: str, of: Sized) -> str:
    return f"{len(of):,} {what}{'' if len(of) == 1 else 's'}"


def as_table(about: Questioned, told: Answers) -> str:
    """The figures, the widest flips, and what failed."""
    found = _by_question(about, told)
    rows = [_row(key, one) for key, changes in found for one in changes]
    flips = [line for key, changes in found for line in _flips(key, changes)]
    return "\n".join(
        ["", *table(_HEAD, rows, _TEXT), *([""] if flips else []), *flips, *_failures(told)]
    )


def as_json(about: Questioned, told: Answers) -> str:
    """The same as JSON, with every flip."""
    questions = {
        key: [{**asdict(one), "agreement": one.agreement} for one in changes]
        for key, changes in _by_question(about, told)
    }
    return jsontext.dumps({"states": len(about.states), "questions": questions})


def _by_question(about: Questioned, told: Answers) -> list[tuple[str, list[Steadiness]]]:
    return [
        (key, steadiness_of(question, [one for one in told if one[0].probe.key == key]))
        for key, question in about.questions.items()
    ]


def _row(key: str, one: Steadiness) -> tuple[str, ...]:
    return (
        key,
        one.change,
        f"{one.compared:,}",
        f"{len(one.flips):,}",
        percent(one.agreement),
        decimal(one.mean_spread),
        decimal(one.max_spread),
        f"{one.failed:,}",
    )


def _flips(key: str, changes: Sequence[Steadiness]) -> Iterator[str]:
    flips = sorted((flip for one in changes for flip in one.flips), key=lambda flip: -flip.spread)
    for flip in flips[:_FLIPS]:
        yield printable(
            f"{key}, input {flip.input}: {flip.said} as it stands, {flip.instead} by "
            f"{flip.variant} (spread {flip.spread:.3f})"
        )


def _failures(told: Answers) -> Iterator[str]:
    counts = Counter(one.error for _, one in told if one.error)
    for message, count in counts.most_common(_MESSAGES):
        yield printable(f"failed, {count:,} answers: {message}")
