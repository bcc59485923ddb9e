"""`GET /health`, `GET /ready` and `GET /metrics`."""

from __future__ import annotations

from flask import Blueprint, Response, request

from svc import __version__
from svc.jsontext import JsonObject
from svc.metrics import Metrics
from svc.schemas import ResponseSchema, Shown
from svc.shapes import TEXT
from svc.web.decorators import fails, open_to_all, query, response
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
    def metrics(names: list[str] | None) -> Response:
        """Show what was counted since the server's start, in the Prometheus text format."""
        text, content_type = counted.render(request.headers.get("Accept"), names)
        return Response(text, content_type=content_type)

    return routes
