"""`GET /v1/audit`."""

from __future__ import annotations

from dataclasses import fields

from flask import Blueprint, Response, g, request

from svc import jsontext, limits
from svc.errors import NotFound
from svc.records import DecisionFacts
from svc.store.decisions import AuditEntry, Decisions
from svc.store.errors import UnknownDecision
from svc.web import query


def blueprint(decisions: Decisions) -> Blueprint:
    """The route that lists decisions, newest first."""
    routes = Blueprint("audit", __name__)

    @routes.get("/v1/audit")
    def audit() -> Response:
        """List a project's decisions, newest first, a page at a time."""
        project = g.access.project(request.args.get("project") or None)
        limit = query.whole("limit", limits.AUDIT_PAGE_DEFAULT, limits.AUDIT_PAGE)
        try:
            found = decisions.page(project, limit + 1, request.args.get("before") or None)
        except UnknownDecision as error:
            raise NotFound(f"before: {error.message}") from None
        entries = found[:limit]
        more = entries[-1].id if len(found) > limit else None
        return Response(_page(project, entries, more), mimetype="application/json")

    return routes


def _page(project: str, entries: list[AuditEntry], next_before: str | None) -> str:
    """The page's JSON; answers are put in as the text that they are stored as.

    To parse a thousand of them only to write them again took most of a page's time.
    """
    listed = ",".join(_entry(entry) for entry in entries)
    head, tail = jsontext.dumps(project), jsontext.dumps(next_before)
    return f'{{"project":{head},"entries":[{listed}],"next_before":{tail}}}'


def _entry(entry: AuditEntry) -> str:
    facts = {column.name: getattr(entry.facts, column.name) for column in fields(DecisionFacts)}
    facts["state_hash"] = entry.facts.state_hash.hex()
    head = jsontext.dumps({"id": entry.id, "created_at": entry.created_at, **facts})
    images = "" if entry.images is None else f',"images":{entry.images}'
    return f'{head[:-1]}{images},"answers":{entry.answers}}}'
