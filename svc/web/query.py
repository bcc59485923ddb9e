"""Values of a query string, checked."""

from __future__ import annotations

import re

from flask import request

from svc.errors import InvalidRequest

_WHOLE = re.compile(r"[0-9]{1,9}")


def text(name: str) -> str:
    """A value that has to be there. Raises `InvalidRequest`."""
    value = request.args.get(name, "")
    if not value:
        raise InvalidRequest(f"{name}: is required in the query, such as ?{name}=...")
    return value


def whole(name: str, default: int, allowed: tuple[int, int]) -> int:
    """A whole number from the first of `allowed` to the last. Raises `InvalidRequest`."""
    value = request.args.get(name)
    if value is None:
        return default
    low, high = allowed
    number = int(value) if _WHOLE.fullmatch(value) else low - 1
    if not low <= number <= high:
        raise InvalidRequest(f"{name}: must be a whole number from {low} to {high:,}")
    return number
