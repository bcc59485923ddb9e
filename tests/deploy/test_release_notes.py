"""The version is in one place, and its notes are in the changelog."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from deploy.release_notes import UNRELEASED, notes, version
from svc import __version__
from tests.e2e.serving import ROOT

CHANGELOG = """# Changelog

## [Unreleased]

### Added
- A route.

## [0.2.0] - 2026-12-01

### Fixed
- A fault.

## [0.1.0] - 2026-11-21
- The first.
"""


def parts(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))


def test_each_version_has_its_part() -> None:
    found = notes(CHANGELOG)
    assert list(found) == [UNRELEASED, "0.2.0", "0.1.0"]
    assert found["0.2.0"] == "### Fixed\n- A fault.\n"
    assert found["0.1.0"] == "- The first.\n"


def test_the_changelog_begins_with_what_is_not_released_and_then_has_this_version() -> None:
    names = list(notes((ROOT / "CHANGELOG.md").read_text("utf-8")))
    assert names[0] == UNRELEASED
    assert all(parts(new) > parts(old) for new, old in pairwise(names[1:]))
    assert names[1:2] in ([], [__version__])


def test_the_version_is_written_once() -> None:
    text = (ROOT / "svc/__init__.py").read_text("utf-8")
    assert version(text) == __version__
    assert "version = attr: svc.__version__" in (ROOT / "setup.cfg").read_text("utf-8")


@pytest.mark.parametrize("wanted", [[], [UNRELEASED]])
def test_the_notes_are_printed(wanted: list[str]) -> None:
    command = [sys.executable, "deploy/release_notes.py", *wanted]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("### ")


def test_a_version_that_never_was_is_told() -> None:
    command = [sys.executable, "deploy/release_notes.py", "77.0.0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("no notes of 77.0.0; there are Unreleased")
