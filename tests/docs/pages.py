"""The pages of the documentation, and the fenced blocks in them.

What a block is, its language says:

- `bash` and `console` are run by the page's shell, one after the other; a `json` or `text` block
  right below a `bash` block is what it prints. In `console` a line that begins with `$ ` is a
  command, and the lines below it are what it prints.
- `python` is run by the page's interpreter; a `text` block right below is what it prints.
- A block right below a line that ends in a file's name and a colon is that file.
- `sh` needs what a test does not have, such as docker or a provider's key. It is not run; its
  commands and options must exist.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
RUN = ("bash", "console", "python")
# What `make engines` runs.
ENGINES = "py"
PRINTED = ("json", "text")
_FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w-]+\.\w+)`:$")


@dataclass(frozen=True)
class Block:
    """One fenced block; `above` is what stands between it and the block before."""

    page: str
    line: int
    language: str
    text: str
    above: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name of the file that this block is, if it is one."""
        named = _FILE.search(self.above.strip())
        return named[1] if named else None


@dataclass(frozen=True)
class Request:
    """A body that a page sends with curl, and whether it is one that the server takes."""

    place: str
    path: str
    body: Any
    works: bool


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in their order."""
    return list(_blocks(page))


def _blocks(page: Path) -> Iterator[Block]:
    text, end = page.read_text("utf-8"), 0
    for found in _FENCED.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page.name, line, found[1], found[2], text[end : found.start()])
        end = found.end()


def requests() -> list[Request]:
    """Every request with a body that a page sends, as it stands there."""
    return [
        request
        for page in PAGES
        for block, below in pairwise([*blocks(page), _END])
        if block.language == "bash"
        for request in _requests(block, works='"error"' not in below.text)
    ]


_END = Block("", 0, "", "", "")


def _requests(block: Block, works: bool) -> Iterator[Request]:
    for command in re.split(r"^(?=curl )", block.text, flags=re.MULTILINE):
        if command.startswith("curl ") and " -d '{" in command:
            words = shlex.split(command)
            url = next(urlsplit(word) for word in words if word.startswith("http"))
            body = json.loads(words[words.index("-d") + 1])
            yield Request(block.place, url.path, body, works)
