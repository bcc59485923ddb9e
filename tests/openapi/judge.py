"""Whether requests and answers are what the document says they are."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from svc.openapi import document


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
