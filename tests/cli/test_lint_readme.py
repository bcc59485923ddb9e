"""What the README shows of `svc lint`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from svc.cli.main import main
from svc.wording import FAULTS
from tests.readme import README

_SHOWN = re.compile(r"`draft\.json`\n\n```json\n(.*?)```.*?```text\n(.*?)```", re.S)


def test_the_draft_has_the_findings_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = _SHOWN.search(README.read_text("utf-8"))
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    Path("draft.json").write_text(shown[1])
    ended = CliRunner().invoke(main, ["lint", "draft.json"])
    assert ended.exit_code == 1 and ended.output == shown[2]


def test_the_number_of_kinds_is_told() -> None:
    assert f"It knows {len(FAULTS)} kinds" in README.read_text("utf-8")
