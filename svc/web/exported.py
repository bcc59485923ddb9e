"""The text of exported decisions, bounded by its bytes."""

from __future__ import annotations

from collections.abc import Callable

from svc import limits
from svc.learning import Answers
from svc.store import GivenLabel, Labels, QuestionVersions
from svc.store.decisions import AuditEntry, AuditPage
from svc.web import spreadsheets
from svc.web.entries import entry_text, with_labels

# What stands for a decision in an export.
Write = Callable[[AuditEntry], str]


def lines(labels: Labels) -> Write:
    """A line of JSON for each decision."""

    def write(entry: AuditEntry) -> str:
        return f"{with_labels(entry_text(entry), _labels(labels, entry))}\n"

    return write


def rows(labels: Labels, versions: QuestionVersions, question: str | None) -> Write:
    """A row of CSV for each answer of a decision, or for the one to `question`."""
    answers = Answers(versions)

    def write(entry: AuditEntry) -> str:
        given = _labels(labels, entry)
        return spreadsheets.text_of(spreadsheets.rows(entry, given, answers, question))

    return write


def written(page: AuditPage, head: str, write: Write) -> tuple[bytes, str | None]:
    """As many decisions of a page as have the bytes of one; and the id that leads on.

    Labels, and what CSV says again in each row, are not counted in the page itself.
    """
    parts, left = [head.encode()], limits.PAGE_BYTES
    for number, entry in enumerate(page.entries):
        text = write(entry).encode("utf-8", "replace")
        left -= len(text)
        if number and left < 0:
            return b"".join(parts), page.entries[number - 1].id
        parts.append(text)
    return b"".join(parts), page.next_before


def _labels(labels: Labels, entry: AuditEntry) -> list[GivenLabel]:
    """Those of one decision alone: those of a whole page may be hundreds of megabytes."""
    return labels.of_decisions([entry.seq]).get(entry.seq, [])
