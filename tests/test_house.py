"""The figures that CONTRIBUTING promises."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house import comments, figures, project_imports

PAGE = Path(__file__).resolve().parent.parent / "CONTRIBUTING.md"
_ROW = re.compile(r"^\| (.+?) \| at most ([\d,]+) \|$", re.M)


def test_no_figure_is_above_what_contributing_allows() -> None:
    allowed = {what: int(most.replace(",", "")) for what, most in _ROW.findall(PAGE.read_text())}
    found = figures()
    assert allowed
    assert {what: found[what] for what, most in allowed.items() if found[what] > most} == {}


def test_comments_are_counted_by_where_they_stand() -> None:
    text = "# One block\n# of two lines.\nx = 1  # behind code\n# another\ny = 2  # noqa: E501\n"
    assert comments(text) == (1, 2)


def test_imports_of_the_project_are_counted_by_module() -> None:
    text = "import json\nfrom svc import limits, logs\nfrom svc.store.keys import Keys, ApiKey\n"
    assert list(project_imports(text)) == ["svc.limits", "svc.logs", "svc.store.keys"]
