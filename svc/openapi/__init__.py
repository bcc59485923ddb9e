"""The HTTP interface in OpenAPI 3.1, and the parts of it that tools take as JSON schema.

Nothing is described here. Question types, the schemas of requests and of responses, exceptions and
views say themselves what they are; this room asks them and writes it down the way OpenAPI has it.
"""

from __future__ import annotations

from svc.openapi.components import decision_request, decision_response
from svc.openapi.document import document
from svc.openapi.operation import Description, Route

__all__ = ["Description", "Route", "decision_request", "decision_response", "document"]
