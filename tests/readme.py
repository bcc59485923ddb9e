"""The worked requests of the README: each curl line with the answer that stands under it."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

README = Path(__file__).parent.parent / "README.md"
EXAMPLE = re.compile(r"```bash\n(curl .+?)```\n\n```json\n(.*?)```", re.S)
# What differs from run to run.
PASSING = {"id": "dec_…", "latency_ms": 12.3}


@dataclass(frozen=True)
class Example:
    """One worked request."""

    path: str
    body: Any
    answer: str  # JSON as it stands in the README


def examples() -> list[Example]:
    """Every worked request, in the order of the page."""
    return [_example(*match) for match in EXAMPLE.findall(README.read_text("utf-8"))]


def _example(command: str, answer: str) -> Example:
    words = shlex.split(command)
    (url,) = (word for word in words if word.startswith("http"))
    return Example(urlsplit(url).path, json.loads(words[words.index("-d") + 1]), answer)


def settled(answer: Any) -> Any:
    """An answer with what differs from run to run replaced."""
    return answer | {name: PASSING[name] for name in PASSING if name in answer}
