"""The examples in Python of the README and of docs/python.md, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.serving import ROOT, Server


def examples(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def test_the_examples_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,), page = examples("README.md"), examples("docs/python.md")
    assert len(page) == 2
    with Server(tmp_path / "svc.db", "--demo") as server:
        program = "\n".join([example, *page]).replace("http://127.0.0.1:7777", server.url)
        exec(compile(program, "docs/python.md", "exec"), {})
    brief, first, *others = capsys.readouterr().out.splitlines()
    assert brief.split()[0] in ("billing", "technical", "account", "none_of_these")
    assert first.split()[0] in ("billing", "tech", "none_of_these")
    assert [line.split(" ", 1)[1] for line in others] == [
        "The parcel is late.",
        "Please cancel my order.",
    ]
