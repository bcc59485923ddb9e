"""The HTTP interface in OpenAPI 3.1, and the parts of it that tools take as JSON schema.

Request bodies come from the marshmallow schemas that check them; what the server answers is
written down here, and held by tests against what it does answer.
"""

from __future__ import annotations

from svc.openapi.document import decision_request, decision_response, document

__all__ = ["decision_request", "decision_response", "document"]
