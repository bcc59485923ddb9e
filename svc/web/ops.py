"""`GET /health`, `GET /ready` and `GET /metrics`."""

from __future__ import annotations

from functools import partial

from flask import Blueprint, Response, g, request

from svc import __version__
from svc.jsontext import JsonObject
from svc.metrics import Metrics, everything, is_of
from svc.schemas import ResponseSchema, Shown
from svc.shapes import TEXT
from svc.web.decorators import fails, open_to_all, query, response, scrape
from svc.web.query import QuerySchema, QueryTexts
from svc.web.readiness import Readiness

# The request's `Accept` decides between these.
PROMETHEUS = ("text/plain", "application/openmetrics-text")


class HealthSchema(ResponseSchema):
    """A server that answers."""

    status = Shown({"const": "ok"})
    version = Shown(TEXT)


class ReadySchema(ResponseSchema):
    """A server that can do its work."""

    status = Shown({"const": "ready"})


class MetricsQuerySchema(QuerySchema):
    names = QueryTexts("Only these samples.", data_key="name[]", load_default=None)


def blueprint(counted: Metrics, readiness: Readiness) -> Blueprint:
    """The routes for the operators of the server."""
    routes = Blueprint("ops", __name__)

    @routes.get("/health")
    @response(HealthSchema)
    @open_to_all
    def health() -> JsonObject:
        """Say that the server answers, and its version."""
        return {"status": "ok", "version": __version__}

    @routes.get("/ready")
    @response(ReadySchema)
    @fails(503)
    @open_to_all
    def ready() -> JsonObject:
        """Say whether the server can do its work: its database takes writes, and it has a provider.

        Whether a provider answers is not asked.
        """
        readiness.check()
        return {"status": "ready"}

    @routes.get("/metrics")
    @query(MetricsQuerySchema)
    @response(TEXT, media=PROMETHEUS)
    @scrape
    def metrics(names: list[str] | None) -> Response:
        """Show what was counted since the server's start, in the Prometheus text format.

        A key that is for one project sees no series of other projects, and of budgets its own and
        those of its project. What names no project is of the whole server. A key may have four such
        requests under way in each worker.
        """
        only, accept = g.access.only, request.headers.get("Accept")
        sees = everything if only is None else partial(is_of, only, g.access.key_id)
        text, content_type = counted.render(accept, names, sees)
        return Response(text, content_type=content_type)

    return routes
