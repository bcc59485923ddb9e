"""`GET /v1/export`: decisions with their answers and labels, for spreadsheets and programs."""

from __future__ import annotations

from enum import StrEnum

from flask import Blueprint, Response, g

from svc.shapes import TEXT
from svc.store import Labels
from svc.web import exported, spreadsheets
from svc.web.decorators import fails, query, response
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

        JSON lines are decisions as `GET /v1/decisions/{{decision_id}}` shows them, without
        `questions`. CSV has a row
        for each answer, of `question` alone where one is given, with its head on the first page;
        what a spreadsheet would run has a `'` before it. A page ends with the decision before the
        one with which it had more than about 2 MB, or for whose rows of CSV about 5,000 wordings of
        questions had been read; `x-next-before` leads on, and is missing at the end.
        """
        project = g.access.reading(project)
        with pages.page(project, filters, limit, before) as page:
            write = exported.lines(labels)
            if format is Format.CSV:
                write = exported.rows(labels, pages.versions, filters.question)
            head = spreadsheets.HEAD if format is Format.CSV and not before else ""
            text, next_before = exported.written(page, head, write)
        answer = Response(text, mimetype=MEDIA[format])
        if next_before is not None:
            answer.headers[NEXT] = next_before
        return answer

    return routes
