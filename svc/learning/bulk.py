"""Many true answers at once: each is looked up and checked, and what is wrong is told by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from svc import limits
from svc.errors import InvalidRequest, NotFound
from svc.learning.checking import Checked, Checks
from svc.schemas import BulkFeedback, Feedback, LabelledLine, LineError
from svc.store.decisions import Decisions, StoredDecision

_TOO_LARGE = (
    "the decisions of so many lines are too large to be read at once; send this line, and those "
    "after it, in another request"
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
    for lines in _together(given.lines):
        wanted = _ids(lines, decisions, project)
        # An exact question is there twice, as it is stored and parsed.
        found, left = decisions.several(
            set(wanted.values()), left - 2 * checks.chars_read + counted
        )
        counted = 2 * checks.chars_read
        for line in lines:
            decision = found.get(wanted.get(line.number, ""))
            if decision is None and left < 0:
                errors.append(LineError(line.number, "", _TOO_LARGE))
            elif decision is None or only not in (None, decision.facts.project):
                field = "ref" if line.id is None else "id"
                errors.append(LineError(line.number, field, "there is no such decision"))
            else:
                _check(line, decision, checks, labels, errors)
    return labels, sorted(errors, key=lambda error: error.line)


def _together(lines: Sequence[LabelledLine]) -> Iterator[list[LabelledLine]]:
    """The lines, so many at once as are looked up together."""
    rest = iter(lines)
    while some := list(islice(rest, limits.BULK_DECISIONS_AT_ONCE)):
        yield some


def _ids(lines: Sequence[LabelledLine], decisions: Decisions, project: str) -> dict[int, str]:
    """The id of each line's decision by the line's number, as far as there is one."""
    refs = [line.ref for line in lines if line.ref is not None]
    newest = decisions.newest(project, refs) if refs else {}
    named = ((line.number, line.id or newest.get(line.ref or "")) for line in lines)
    return {number: decision_id for number, decision_id in named if decision_id}


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
