"""What the fuzz tests draw from: good inputs that are damaged, and inputs that are nothing.

`make fuzz` sets FUZZ_EXAMPLES and tries others each time; otherwise the same few are tried.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

MANY = "FUZZ_EXAMPLES"
FUZZED = settings(
    max_examples=int(os.environ.get(MANY, "100")),
    derandomize=MANY not in os.environ,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
DEPTHS = (50, 400, 3_000)  # levels; the second is more than Python code recurses through lightly

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ODD = st.sampled_from(
    [
        "",
        " ",
        "\u0000",
        "\u202e",
        "\U0001f600",
        "NaN",
        "1e999",
        "true",
        "@key",
        "-0",
        "..",
        "a" * 5000,
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 300),
    st.integers(),
    st.sampled_from([10**400, -(10**20), 2**53 + 1]),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    ODD,
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


def nested(depth: int) -> Any:
    """A list in a list, many times."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


DEEP = st.sampled_from(DEPTHS).map(nested)


@st.composite
def damaged(draw: st.DrawFn, good: Any, most: int = 3) -> Any:
    """`good` with values replaced, removed or added in one to `most` places."""
    value = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, most))):
        found = list(places(value))
        if not found:
            return draw(JSON)
        place, key = draw(st.sampled_from(found))
        change = draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "remove":
            del place[key]
        elif change == "add" and isinstance(place, dict):
            place[draw(TEXT)] = draw(JSON)
        else:
            place[key] = draw(st.one_of(JSON, DEEP))
    return value


@st.composite
def damaged_bytes(draw: st.DrawFn, good: Any) -> bytes:
    """The JSON of a damaged `good`, and then bytes of it cut, repeated or overwritten."""
    data = bytearray(as_json(draw(st.one_of(st.just(good), damaged(good), JSON))))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        other = draw(st.one_of(st.binary(max_size=8), st.just(bytes(data[start:end]) * 2)))
        data[start:end] = other
    return bytes(data)


def as_json(value: Any) -> bytes:
    """JSON as any client may write it; nesting is too deep for the standard library's encoder."""
    depth, inner = 0, value
    while isinstance(inner, list) and len(inner) == 1:
        depth, inner = depth + 1, inner[0]
    if isinstance(inner, dict):
        members = (json.dumps(key).encode() + b":" + as_json(inner[key]) for key in inner)
        data = b"{" + b",".join(members) + b"}"
    elif isinstance(inner, list):
        data = b"[" + b",".join(as_json(item) for item in inner) + b"]"
    else:
        data = json.dumps(inner).encode()
    return b"[" * depth + data + b"]" * depth


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member of every object and list within."""
    waiting = [value]
    while waiting:
        place = waiting.pop()
        keys = list(place) if isinstance(place, dict) else range(len(place))
        for key in keys:
            yield place, key
            if isinstance(place[key], dict | list):
                waiting.append(place[key])
