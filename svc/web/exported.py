"""The text of exported decisions, bounded by its bytes."""

from __future__ import annotations

from collections.abc import Callable

from svc import limits
from svc.learning import Answers
from svc.store import GivenLabel, Labels, QuestionVersions
from svc.store.decisions import AuditEntry, AuditPage
from svc.web import spreadsheets
from svc.web.entries import entry_text, with_labels

# The text that stands for a decision in an export, and how many characters were read besides.
Write = Callable[[AuditEntry], tuple[str, int]]


def lines(labels: Labels) -> Write:
    """A line of JSON for each decision."""

    def write(entry: AuditEntry) -> tuple[str, int]:
        return f"{with_labels(entry_text(entry), _labels(labels, entry))}\n", 0

    return write


def rows(labels: Labels, versions: QuestionVersions, question: str | None) -> Write:
    """A row of CSV for each answer of a decision, or for the one to `question`."""
    answers = Answers(versions)

    def write(entry: AuditEntry) -> tuple[str, int]:
        given, read = _labels(labels, entry), answers.chars_read
        text = spreadsheets.text_of(spreadsheets.rows(entry, given, answers, question))
        return text, answers.chars_read - read

    return write


def written(page: AuditPage, head: str, write: Write) -> tuple[bytes, str | None]:
    """As many decisions of a page as have the bytes of one; and the id that leads on.

    Labels, and what CSV says again in each row, are not counted in the page itself. Exact questions
    that are read count as if they stood in it, as a row with one of its own costs much more.
    """
    parts, left = [head.encode()], limits.PAGE_BYTES
    for number, entry in enumerate(page.entries):
        row, read = write(entry)
        text = row.encode("utf-8", "replace")
        left -= len(text) + read
        if number and left < 0:
            return b"".join(parts), page.entries[number - 1].id
        parts.append(text)
    return b"".join(parts), page.next_before


def _labels(labels: Labels, entry: AuditEntry) -> list[GivenLabel]:
    """Those of one decision alone: those of a whole page may be hundreds of megabytes."""
    return labels.of_decisions([entry.seq]).get(entry.seq, [])
