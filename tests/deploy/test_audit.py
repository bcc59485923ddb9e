"""What is said of the advisories of packages, and what is never said without their data."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.e2e.serving import ROOT

SAFE = {"name": "flask", "version": "3.1.3", "vulns": []}
UNSAFE = {"name": "jinja2", "version": "2.0", "vulns": [{"id": "CVE-2026-1"}]}
UNKNOWN = {"name": "numpy", "skip_reason": "not found"}


def audit(report: str) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "deploy/audit.py")],
        input=report,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return ended.returncode, ended.stdout


@pytest.mark.parametrize(
    ("packages", "status", "words"),
    [
        ([SAFE], 0, "no known advisory for any of 1 packages"),
        ([SAFE, UNSAFE], 1, "jinja2: CVE-2026-1"),
        ([SAFE, UNKNOWN], 2, "not checked, their data could not be had: numpy"),
        ([UNSAFE, UNKNOWN], 1, "not checked, their data could not be had: numpy"),
        ([], 2, ""),
    ],
)
def test_a_report_is_told_with_a_status(packages: list[Any], status: int, words: str) -> None:
    code, said = audit(json.dumps({"dependencies": packages, "fixes": []}))
    assert code == status
    assert words in said


@pytest.mark.parametrize("report", ["", "no route to host", "[]", "{}"])
def test_no_report_is_no_good_news(report: str) -> None:
    assert audit(report) == (2, "not checked: the data of advisories could not be had from here\n")
