"""The examples of docs/decisions-api.md run against a real server, and print what stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.e2e.serving import ROOT, Server

PAGE = (ROOT / "docs" / "decisions-api.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(tmp_path_factory.mktemp("page") / "svc.db", "--demo") as server:
        yield server.url


def test_there_is_an_example_for_each_client() -> None:
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_stands_under_it(
    url: str, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed = EXAMPLES[number]
    exec(code.replace("http://127.0.0.1:7777", url), {})
    assert capsys.readouterr().out == printed
