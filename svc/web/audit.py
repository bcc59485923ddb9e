"""`GET /v1/audit`."""

from __future__ import annotations

import threading

from flask import Blueprint, Response, g

from svc import jsontext, limits
from svc.errors import NotFound
from svc.schemas import (
    DECISION_ID,
    ResponseSchema,
    Shown,
)
from svc.shapes import TEXT, array, nullable
from svc.store import QuestionVersions, UnknownDecision
from svc.store.decisions import AuditEntry, Decisions
from svc.web.decorators import fails, query, response
from svc.web.entries import AuditEntrySchema, entry_text
from svc.web.filters import Filters, FiltersSchema
from svc.web.query import QueryText, QueryWhole


class AuditQuerySchema(FiltersSchema):
    limit = QueryWhole(
        *limits.AUDIT_PAGE,
        description="Entries on the page, where they have no more than about 2 MB.",
        load_default=limits.AUDIT_PAGE_DEFAULT,
    )
    before = QueryText("Only decisions older than this one: `next_before` of a page.")


class AuditPageSchema(ResponseSchema):
    """Decisions of a project, newest first."""

    project = Shown(TEXT)
    entries = Shown(array(AuditEntrySchema, 0, limits.AUDIT_PAGE[1]))
    next_before = Shown(nullable(DECISION_ID), "`before` of the next page, if any.")


def blueprint(decisions: Decisions, versions: QuestionVersions) -> Blueprint:
    """The route that lists decisions, newest first."""
    routes = Blueprint("audit", __name__)
    # A page takes several times its bytes while it is made.
    making = threading.BoundedSemaphore(limits.PAGES_AT_ONCE)

    @routes.get("/v1/audit")
    @query(AuditQuerySchema)
    @response(AuditPageSchema)
    @fails(404)
    def audit(
        limit: int, filters: Filters, project: str | None = None, before: str | None = None
    ) -> Response:
        """List a project's decisions, newest first, a page at a time.

        A page also ends after about 2 MB, and with filters once {AUDIT_LOOKED_AT} decisions were
        looked at, with fewer entries than `limit` or none; `next_before` leads on, and is null at
        the end.
        """
        project = g.access.reading(project)
        with making:
            try:
                page = decisions.page(
                    project,
                    limit,
                    before,
                    limits.PAGE_BYTES,
                    filters.wanted,
                    filters.matching(versions),
                )
            except UnknownDecision as error:
                raise NotFound(f"before: {error.message}") from None
            text = _page(project, page.entries, page.next_before)
            return Response(text, mimetype="application/json")

    return routes


def _page(project: str, entries: list[AuditEntry], next_before: str | None) -> str:
    """The page's JSON."""
    listed = ",".join(map(entry_text, entries))
    head, tail = jsontext.dumps(project), jsontext.dumps(next_before)
    return f'{{"project":{head},"entries":[{listed}],"next_before":{tail}}}'
