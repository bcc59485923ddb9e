"""Writes the snapshots that are missing: `python -m tests.engine.snapshots`."""

from __future__ import annotations

import sys

from tests.engine.snapshots import FOLDER, write_missing

for file in write_missing(FOLDER):
    sys.stdout.write(f"wrote {file.relative_to(FOLDER)}\n")
