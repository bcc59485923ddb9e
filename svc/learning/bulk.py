"""Many true answers at once: each is looked up and checked, and what is wrong is told by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from svc import limits
from svc.errors import InvalidRequest, NotFound
from svc.learning.checking import Checked, Checks
from svc.schemas import BulkFeedback, Feedback, LabelledLine, LineError
from svc.store import NewLabel
from svc.store.decisions import Decisions, StoredDecision

_TOO_LARGE = (
    "the decisions of so many lines are too large to be read at once; send the lines of this "
    "error in another request"
)


def checked(
    given: BulkFeedback, decisions: Decisions, checks: Checks, project: str, only: str | None
) -> tuple[list[Checked], list[LineError]]:
    """The labels that can be stored, and the errors of all lines by line.

    Refs are those of `project`; with `only`, decisions of other projects do not exist.
    Raises `StorageError`.
    """
    labels: list[Checked] = []
    errors = list(given.errors)
    left: float = limits.BULK_CHARS
    counted = 0
    for wanted in _together(_by_decision(given.lines, decisions, project)):
        # An exact question is there twice, as it is stored and parsed.
        found, left = decisions.several(wanted, left - 2 * checks.chars_read + counted)
        counted = 2 * checks.chars_read
        for decision_id, line in ((one, line) for one in wanted for line in wanted[one]):
            decision = found.get(decision_id)
            if decision is None and left < 0:
                errors.append(LineError(line.number, "", _TOO_LARGE))
            elif decision is None or only not in (None, decision.facts.project):
                field = "ref" if line.id is None else "id"
                errors.append(LineError(line.number, field, "there is no such decision"))
            else:
                _check(line, decision, checks, labels, errors)
    return labels, sorted(errors, key=lambda error: error.line)


def check_size(labels: Sequence[NewLabel]) -> None:
    """Raise `InvalidRequest` where all of them are too long for one transaction."""
    chars = sum(label.chars for label in labels)
    if chars > limits.ATOMIC_CHARS:
        raise InvalidRequest(
            f"labels: with the keys of their questions they have {chars:,} characters, at most "
            f"{limits.ATOMIC_CHARS:,} are stored together; send fewer, or without atomic"
        )


def _by_decision(
    lines: Sequence[LabelledLine], decisions: Decisions, project: str
) -> dict[str, list[LabelledLine]]:
    """The lines about each decision, in their order, by its id; "" for a ref that has none."""
    found: dict[str, list[LabelledLine]] = {}
    for begin in range(0, len(lines), limits.BULK_DECISIONS_AT_ONCE):
        some = lines[begin : begin + limits.BULK_DECISIONS_AT_ONCE]
        refs = [line.ref for line in some if line.ref is not None]
        newest = decisions.newest(project, refs) if refs else {}
        for line in some:
            found.setdefault(line.id or newest.get(line.ref or "", ""), []).append(line)
    return found


def _together(
    by_decision: Mapping[str, list[LabelledLine]],
) -> Iterator[dict[str, list[LabelledLine]]]:
    """The same, so many decisions at once as are looked up together."""
    rest = iter(by_decision.items())
    while some := dict(islice(rest, limits.BULK_DECISIONS_AT_ONCE)):
        yield some


def _check(
    line: LabelledLine,
    decision: StoredDecision,
    checks: Checks,
    labels: list[Checked],
    errors: list[LineError],
) -> None:
    origin = (line.sampled, line.chance, line.reviewer)
    for key, label in line.labels.items():
        feedback = Feedback(line.id or "", key, label, *origin)
        try:
            labels.append(checks.check(decision, feedback))
        except (NotFound, InvalidRequest) as error:
            errors.append(LineError(line.number, f"labels.{key}", error.message))
