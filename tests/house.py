"""Figures of the code that say how well its rooms are kept: `python -m tests.house` prints them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

SVC = Path(__file__).resolve().parent.parent / "svc"
MANY_IMPORTS = 8
# Comments that tools read, and lines that head a section.
_NO_WORDS = re.compile(r"#\s*(?:noqa|type:|---)")


def figures() -> dict[str, int]:
    """Each figure by what it counts."""
    files = sorted(SVC.rglob("*.py"))
    texts = [file.read_text("utf-8") for file in files]
    trailing, own = (sum(counts) for counts in zip(*map(comments, texts), strict=True))
    return {
        "`dict[str, Any]` in svc": sum(text.count("dict[str, Any]") for text in texts),
        f"files with more than {MANY_IMPORTS} project imports": sum(
            len(set(project_imports(text))) > MANY_IMPORTS
            for file, text in zip(files, texts, strict=True)
            if file.name != "__init__.py"
        ),
        "lines of `openapi/`": sum(
            len(text.splitlines())
            for file, text in zip(files, texts, strict=True)
            if file.parent.name == "openapi"
        ),
        "trailing comments": trailing,
        "own-line comments": own,
    }


def project_imports(text: str) -> Iterator[str]:
    """The modules of the project that a file imports from."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "svc":
            yield from (f"svc.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("svc."):
            yield str(node.module)


def comments(text: str) -> tuple[int, int]:
    """How many comments stand behind code, and how many blocks of them on lines of their own."""
    trailing, own, last_own = 0, 0, -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or _NO_WORDS.match(token.string):
            continue
        row, column = token.start
        if token.line[:column].strip():
            trailing += 1
        else:
            own += last_own != row - 1
            last_own = row
    return trailing, own


if __name__ == "__main__":
    for what, count in figures().items():
        print(f"{count:6,}  {what}")  # noqa: T201
