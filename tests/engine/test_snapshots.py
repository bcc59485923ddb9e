"""Released prompts stay as they are, byte for byte; `tests/engine/snapshots` says how to add some.

A failure here means that answers of a released config may change: mend the code, not the file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.pins import PINS
from tests.engine.snapshots import (
    FOLDER,
    OPENING,
    lines,
    place,
    recorded,
    snapshot,
    visible,
    write_missing,
)
from tests.engine.snapshots.cases import GROUPS

FILES = sorted(FOLDER.glob("*/*.txt"))
VARIANTS = {(group, one.name): one for group, many in GROUPS.items() for one in many}
RECORDED = [
    pytest.param(file, name, id=f"{file.parent.name}-{file.stem}-{name}")
    for file in FILES
    for name in recorded(file)
    if name != OPENING
]


@pytest.mark.parametrize(("file", "name"), RECORDED)
def test_a_pin_shows_models_what_its_snapshot_says(file: Path, name: str) -> None:
    opening, rest = snapshot(file.parent.name, VARIANTS[file.stem, name])
    assert opening == recorded(file)[OPENING]
    assert rest == recorded(file)[name]


@pytest.mark.parametrize("group", list(GROUPS))
@pytest.mark.parametrize("pin", list(PINS))
def test_every_pin_has_a_snapshot_of_every_case_in_order(pin: str, group: str) -> None:
    file = place(FOLDER, pin, group)
    assert file.exists(), f"{pin} has no {file.name}: python -m tests.engine.snapshots writes it"
    assert list(recorded(file)) == [OPENING, *(one.name for one in GROUPS[group])]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_file_is_of_a_pin_and_of_a_group(file: Path) -> None:
    assert file.parent.name in PINS
    assert file.stem in GROUPS


def test_only_files_that_are_missing_are_written(tmp_path: Path) -> None:
    files = [place(tmp_path, pin, group) for pin in PINS for group in GROUPS]
    kept, *_, removed = files
    assert list(write_missing(tmp_path)) == files
    kept.write_text("as it was")
    removed.unlink()
    assert list(write_missing(tmp_path)) == [removed]
    assert kept.read_text() == "as it was"


def test_different_texts_never_look_alike_in_a_snapshot() -> None:
    texts = ["a\n", "a", "a ", "a\\x20", "a\r", "a\\r", "a\n\n", "a\u2028", "a\n|", "a\n\\n"]
    assert len({"\n".join(lines(text)) for text in texts}) == len(texts)
    assert visible("a\\\r ") == "a\\\\\\r\\x20"
