"""`GET /v1/audit`."""

from __future__ import annotations

from flask import Blueprint, Response, g

from svc import jsontext, limits
from svc.schemas import (
    DECISION_ID,
    ResponseSchema,
    Shown,
)
from svc.shapes import TEXT, array, nullable
from svc.store.decisions import AuditEntry
from svc.web.decorators import fails, query, response
from svc.web.entries import AuditEntrySchema, entry_text
from svc.web.filters import Filters
from svc.web.pages import PageQuerySchema, Pages


class AuditPageSchema(ResponseSchema):
    """Decisions of a project, newest first."""

    project = Shown(TEXT)
    entries = Shown(array(AuditEntrySchema, 0, limits.AUDIT_PAGE[1]))
    next_before = Shown(nullable(DECISION_ID), "`before` of the next page, if any.")


def blueprint(pages: Pages) -> Blueprint:
    """The route that lists decisions, newest first."""
    routes = Blueprint("audit", __name__)

    @routes.get("/v1/audit")
    @query(PageQuerySchema)
    @response(AuditPageSchema)
    @fails(404, 504)
    def audit(
        limit: int, filters: Filters, project: str | None = None, before: str | None = None
    ) -> Response:
        """List a project's decisions, newest first, a page at a time.

        A page also ends after about 2 MB, and with filters once {AUDIT_LOOKED_AT} decisions were
        looked at, with fewer entries than `limit` or none; `next_before` leads on, and is null at
        the end.
        """
        project = g.access.reading(project)
        with pages.page(project, filters, limit, before) as page:
            text = _page(project, page.entries, page.next_before)
            return Response(text, mimetype="application/json")

    return routes


def _page(project: str, entries: list[AuditEntry], next_before: str | None) -> str:
    """The page's JSON."""
    listed = ",".join(map(entry_text, entries))
    head, tail = jsontext.dumps(project), jsontext.dumps(next_before)
    return f'{{"project":{head},"entries":[{listed}],"next_before":{tail}}}'
