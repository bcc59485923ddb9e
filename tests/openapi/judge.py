"""Whether requests and answers are what the document says they are."""

from __future__ import annotations

from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

from jsonschema import Draft202012Validator

from svc.app import create_app
from svc.bootstrap import build
from svc.settings import load

PROVIDER = {"SVC_MODEL": "@some/model", "SVC_PROVIDER_SOME_URL": "http://127.0.0.1:9"}


@cache
def document() -> Any:
    """The document as a server has it for its clients; no model is asked for it."""
    with TemporaryDirectory() as folder:
        services = build(load({"SVC_DB": f"{folder}/svc.db", **PROVIDER}))
        response = create_app(services).test_client().get("/openapi.json")
        services.close()
    return response.json


def taken(path: str) -> str | None:
    """The component of a route's request body, None where it takes none."""
    operation = document()["paths"].get(path, {}).get("post")
    if operation is None or "requestBody" not in operation:
        return None
    return _component(operation["requestBody"])


def answered(path: str) -> str:
    """The component of what a route answers, to a body where it may take one."""
    operations = document()["paths"][path]
    return _component(success(operations.get("post") or operations["get"]))


def success(operation: Any) -> Any:
    """The response of an operation that succeeds."""
    return next(one for status, one in operation["responses"].items() if status < "3")


def _component(described: Any) -> str:
    reference: str = described["content"]["application/json"]["schema"]["$ref"]
    return reference.rpartition("/")[2]


@cache
def judge(component: str) -> Draft202012Validator:
    """A validator of a component, by the document as clients have it."""
    return _validator(component, document()["components"])


@cache
def strict_judge(component: str) -> Draft202012Validator:
    """The same, with no field allowed that is not described."""
    return _validator(component, _closed(document()["components"]))


def _validator(component: str, components: Any) -> Draft202012Validator:
    return Draft202012Validator(
        {"$ref": f"#/components/schemas/{component}", "components": components},
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )


def _closed(value: Any) -> Any:
    if isinstance(value, list):
        return [_closed(one) for one in value]
    if not isinstance(value, dict):
        return value
    inner = {name: _closed(one) for name, one in value.items()}
    is_record = value.get("type") == "object" and "required" in value
    return {"additionalProperties": False, **inner} if is_record else inner
