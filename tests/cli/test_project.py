"""`svc project`: limits are set, shown, and taken away."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from svc.cli.main import main


def svc(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["project", *arguments, "--db", str(db)])


def test_a_limit_is_set_shown_and_taken_away(tmp_path: Path) -> None:
    db = tmp_path / "svc.db"
    said = svc(db, "set", "shop", "--max-bytes", "5000")
    assert (said.exit_code, said.stdout) == (
        0,
        "the decisions of project 'shop' may fill at most 5,000 bytes\n",
    )
    assert svc(db, "list").stdout.splitlines()[-1].split() == ["shop", "0", "5,000"]
    svc(db, "set", "shop", "--max-bytes", "0")
    assert "shop" not in svc(db, "list").stdout


@pytest.mark.parametrize("most", ["-1", "1000000000000001"])
def test_a_limit_out_of_range_is_refused(tmp_path: Path, most: str) -> None:
    said = svc(tmp_path / "svc.db", "set", "shop", "--max-bytes", most)
    assert said.exit_code == 1
    assert "--max-bytes" in said.stderr and "allowed" in said.stderr
