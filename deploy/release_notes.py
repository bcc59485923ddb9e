"""Prints the release notes of a version: its part of CHANGELOG.md.

    python3 deploy/release_notes.py            # of the version that svc/__init__.py names
    python3 deploy/release_notes.py 0.1.0

A version without a part of its own is not released yet; its notes are those under Unreleased.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[([^\]]+)\](?: - \d{4}-\d{2}-\d{2})?$", re.MULTILINE)
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


def notes(changelog: str) -> dict[str, str]:
    """The notes by version, the newest first."""
    _, *parts = _HEADING.split(changelog)
    return {name: text.strip() + "\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def version(module: str) -> str:
    """The version in the text of `svc/__init__.py`."""
    found = _VERSION.search(module)
    assert found is not None, "svc/__init__.py has no __version__"
    return found[1]


def main(wanted: str | None) -> None:
    """Print the notes; a version without any ends with a line and the status 1."""
    by_version = notes((ROOT / "CHANGELOG.md").read_text("utf-8"))
    own = version((ROOT / "svc/__init__.py").read_text("utf-8"))
    name = wanted or (own if own in by_version else UNRELEASED)
    if name not in by_version:
        sys.exit(f"no notes of {name}; there are {', '.join(by_version)}")
    sys.stdout.write(by_version[name])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
