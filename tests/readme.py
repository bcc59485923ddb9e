"""The worked requests of the README: each curl line with the answer that stands under it."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flask.testing import FlaskClient

README = Path(__file__).parent.parent / "README.md"
EXAMPLE = re.compile(r"```bash\n(curl .+?)```\n\n```json\n(.*?)```", re.S)
# What differs from run to run.
PASSING = {"id": "dec_…", "decision_id": "dec_…", "latency_ms": 12.3, "since": 1790553600000}


_WEEK = re.compile(r'"\d{4}-W\d\d"')


@dataclass(frozen=True)
class Example:
    """One worked request; one without a body is a GET."""

    path: str
    body: Any
    answer: str  # JSON as it stands in the README


def examples() -> list[Example]:
    """Every worked request, in the order of the page."""
    return [_example(*match) for match in EXAMPLE.findall(README.read_text("utf-8"))]


def _example(command: str, answer: str) -> Example:
    words = shlex.split(command)
    (url,) = (urlsplit(word) for word in words if word.startswith("http"))
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    return Example(url.path + (f"?{url.query}" if url.query else ""), body, answer)


def answer_all(client: FlaskClient) -> list[Any]:
    """The answers to all worked requests, sent one after the other, with what passes settled."""
    answers: list[Any] = []
    last_id = ""
    for example in examples():
        if example.body is None:
            response = client.get(example.path)
        else:
            body = json.dumps(example.body).replace(json.dumps(PASSING["id"]), f'"{last_id}"')
            response = client.post(example.path, data=body)
        answer = json.loads(_WEEK.sub('"2026-W47"', response.text))
        last_id = answer.get("id", last_id)
        answers.append(settled(answer))
    return answers


def settled(answer: Any) -> Any:
    """An answer with what differs from run to run replaced."""
    return answer | {name: PASSING[name] for name in PASSING if name in answer}
