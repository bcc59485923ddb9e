"""`GET /v1/export`: decisions with their answers and labels, for spreadsheets and programs."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial

from flask import Blueprint, Response, g

from svc import limits
from svc.learning import Answers
from svc.shapes import TEXT
from svc.store import GivenLabel, Labels
from svc.store.decisions import AuditEntry, AuditPage
from svc.web import spreadsheets
from svc.web.decorators import fails, query, response
from svc.web.entries import entry_text, with_labels
from svc.web.filters import Filters
from svc.web.pages import PageQuerySchema, Pages
from svc.web.query import QueryWord

NEXT = "x-next-before"


class Format(StrEnum):
    """How decisions are written."""

    CSV = "csv"
    LINES = "jsonl"


MEDIA = {Format.CSV: "text/csv", Format.LINES: "application/x-ndjson"}


class ExportQuerySchema(PageQuerySchema):
    format = QueryWord(Format, "CSV, or a JSON object in each line.", load_default=Format.CSV)


def blueprint(pages: Pages, labels: Labels) -> Blueprint:
    """The route that exports decisions with their labels."""
    routes = Blueprint("export", __name__)

    @routes.get("/v1/export")
    @query(ExportQuerySchema)
    @response(TEXT, media=tuple(MEDIA.values()), headers=(NEXT,))
    @fails(404, 504)
    def export(
        format: Format,  # noqa: A002 - the name of the parameter
        limit: int,
        filters: Filters,
        project: str | None = None,
        before: str | None = None,
    ) -> Response:
        """Export decisions with answers, confidences and labels, newest first, a page at a time.

        JSON lines are decisions as `GET /v1/decisions/{{decision_id}}` shows them. CSV has a row
        for each answer, of `question` alone where one is given, with its head on the first page;
        what a spreadsheet would run has a `'` before it. A page ends with the decision before the
        one with which it had more than about 2 MB; `x-next-before` leads on, and is missing at the
        end.
        """
        project = g.access.reading(project)
        with pages.page(project, filters, limit, before) as page:
            if format is Format.LINES:
                head, write = "", partial(_line, labels)
            else:
                head = "" if before else spreadsheets.text_of([spreadsheets.HEAD])
                write = partial(_rows, labels, Answers(pages.versions), filters.question)
            text, next_before = _written(page, head, write)
        exported = Response(text, mimetype=MEDIA[format])
        if next_before is not None:
            exported.headers[NEXT] = next_before
        return exported

    return routes


def _written(
    page: AuditPage, head: str, write: Callable[[AuditEntry], str]
) -> tuple[bytes, str | None]:
    """The decisions of a page, as many as a page may have bytes; and what leads on.

    Labels, and what CSV says again in each row, are not counted in the page itself.
    """
    written, left = [head.encode()], limits.PAGE_BYTES
    for number, entry in enumerate(page.entries):
        text = write(entry).encode("utf-8", "replace")
        left -= len(text)
        if number and left < 0:
            return b"".join(written), page.entries[number - 1].id
        written.append(text)
    return b"".join(written), page.next_before


def _line(labels: Labels, entry: AuditEntry) -> str:
    return f"{with_labels(entry_text(entry), _labels(labels, entry))}\n"


def _rows(labels: Labels, answers: Answers, question: str | None, entry: AuditEntry) -> str:
    rows = spreadsheets.rows(entry, _labels(labels, entry), answers, question)
    return spreadsheets.text_of(rows)


def _labels(labels: Labels, entry: AuditEntry) -> list[GivenLabel]:
    """Those of one decision alone: those of a whole page may be hundreds of megabytes."""
    return labels.of_decisions([entry.seq]).get(entry.seq, [])
