"""Bodies of at most 16 MB that once took a server many seconds, or hundreds of megabytes."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from svc import limits

BODY_BYTES = 16 * 1024 * 1024
QUESTIONS = '"questions":{"q":{"type":"noul","instructions":"Is it so?"}}'


def _state(text: str) -> str:
    return f'{{"state":{text},{QUESTIONS}}}'


def _elements(element: str, count: int) -> str:
    return _state("[" + ",".join([element] * count) + "]")


def _members(count: int) -> str:
    return ",".join(f'"u{number}":1' for number in range(count))


def _question(fields: str) -> str:
    question = f'"type":"noul","instructions":"Is it so?",{fields}'
    return f'{{"state":{{"a":1}},"questions":{{"q":{{{question}}}}}}}'


def _conditions(field: str, value: Any, conditions: Iterable[Any]) -> str:
    """A request whose rules look for much text in one field of the state."""
    listed = list(conditions)
    rules = [{"if": {field: condition}, "answer": True} for condition in listed[:32]]
    question = {"type": "noul", "instructions": "Is it so?", "rules": rules}
    questions = {f"q{number}": question for number in range(64)}
    return json.dumps({"state": {field: value}, "questions": questions})


def _many_conditions() -> str:
    """As many different looks into one text as a request may have."""
    rules = [
        {"if": {"a": {"contains": f"{number % 10}b{number}"}}, "answer": True}
        for number in range(32)
    ]
    question = {"type": "noul", "instructions": "Is it so?", "rules": rules}
    questions = {f"q{number}": question for number in range(64)}
    return json.dumps({"state": {"a": "0123456789b" * 12_000}, "questions": questions})


def _almost_found(letter: str, length: int) -> dict[str, Any]:
    """Questions whose rules look for different texts that are nearly there in many such letters."""
    operands = (
        letter * (number % length) + "b" + letter * (number // length) for number in range(2_048)
    )
    return {
        f"q{number}": {
            "type": "noul",
            "instructions": "?",
            "rules": [
                {"if": {"a": {"contains": next(operands)}}, "answer": True} for _ in range(32)
            ],
        }
        for number in range(64)
    }


def _conditions_in_all(text: str) -> str:
    """As many looks into a text as a request may have, for what takes long to look for."""
    around, asked = text[:10], range(limits.SEARCHED_CHARS // len(text))
    conditions = [{"a": {"contains": f"{around}b{number:x}b{around}"}} for number in asked]
    questions = {
        f"q{first}": {
            "type": "noul",
            "instructions": "?",
            "rules": [{"if": one, "answer": True} for one in conditions[first : first + 32]],
        }
        for first in range(0, len(conditions), 32)
    }
    return json.dumps({"state": {"a": text}, "questions": questions})


def images_beside_rules() -> str:
    """Images of 10 MB that go with each of 64 calls, and as many looks into a text as may be."""
    text = "a" * 149_000
    texts = [
        "a" * (n % 44) + "b" + "a" * (n // 44) for n in range(limits.SEARCHED_CHARS // 149_000)
    ]
    questions = {
        f"q{first}": {
            "type": "noul",
            "instructions": f"{first}?",
            "think": True,
            "rules": [
                {"if": {"a": {"contains": one}}, "answer": True}
                for one in texts[first : first + 32]
            ],
        }
        for first in range(0, 64 * 32, 32)
    }
    data = [base64.b64encode(os.urandom(limits.IMAGE_BYTES - 9)).decode() for _ in range(2)]
    images = [f"data:image/png;base64,{one}" for one in data]
    return json.dumps(
        {"state": {"a": text}, "questions": questions, "images": images, "debias": False}
    )


def almost_found_in(letter: str, length: int, count: int) -> str:
    """A decision on many such letters."""
    questions = _almost_found(letter, length)
    return json.dumps({"state": {"a": letter * count}, "questions": questions})


def almost_found_in_samples(letter: str, length: int, count: int) -> str:
    """A forecast of a hundred such decisions."""
    questions = _almost_found(letter, length)
    return json.dumps({"sample": [{"a": letter * count}] * 100, "questions": questions})


BODIES: dict[str, Callable[[], str]] = {
    "unknown fields": lambda: f'{{"state":"a",{QUESTIONS},{_members(1_200_000)}}}',
    "unknown fields, fewer": lambda: f'{{"state":"a",{QUESTIONS},{_members(190_000)}}}',
    "unknown fields of a question": lambda: _question(_members(190_000)),
    "unknown fields of a question, fewer": lambda: _question(_members(80_000)),
    "conditions": lambda: _question(f'"when":{{{_members(190_000)}}}'),
    "conditions, fewer": lambda: _question(f'"when":{{{_members(80_000)}}}'),
    "empty lists": lambda: _elements("[]", 5_500_000),
    "empty lists, fewer": lambda: _elements("[]", 90_000),
    "numbers beyond a float": lambda: _elements("1e400", 2_700_000),
    "numbers beyond a float, fewer": lambda: _elements("1e400", 190_000),
    "numbers of many digits": lambda: _elements("1" * 4_299, 3_800),
    "decimals of many digits": lambda: _elements("1." + "1" * 76 + "e5", 190_000),
    "decimals of many zeros": lambda: _elements("0." + "0" * 70 + "1e5", 190_000),
    "one number": lambda: _state("1" * (BODY_BYTES - 200)),
    "short texts": lambda: _elements('""', 5_500_000),
    "texts that end in a backslash": lambda: _elements(r'"\\"', 3_300_000),
    "one text with an emoji, written and as escapes": lambda: _state(
        '"\U0001f600' + r"\ud83d\ude00\\" + "a" * (BODY_BYTES - 200) + '"'
    ),
    "one text of escaped quotes": lambda: _state('"' + r"\"" * 8_000_000 + '"'),
    "a text in a list for each rule": lambda: _conditions(
        "a", ["ß" * 20] * 6_000, ({"contains": "ß" * number} for number in range(1, 33))
    ),
    "a long text for each of many conditions": _many_conditions,
    "texts that are nearly found": lambda: almost_found_in("a", 44, 149_000),
    # Such a letter is two once case is folded.
    "texts between letters that are nearly found": lambda: _conditions_in_all("a" * 149_000),
    "longer texts that are nearly found": lambda: almost_found_in("\u00df", 44, 149_000),
    "nearly found in a shorter text": lambda: almost_found_in("\u00df", 44, 14_900),
    "a long text for each rule": lambda: _conditions(
        "a", "a" * 140_000, ({"contains": "a" * number + "b"} for number in range(1, 33))
    ),
}
