"""The lock file has every package of an installation, in versions that setup.cfg allows."""

from __future__ import annotations

import configparser
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "deploy/requirements.lock").read_text("utf-8")
LOCKED = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+) \\$", LOCK, re.MULTILINE)
}


def declared() -> list[Requirement]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return [Requirement(line) for line in config["options"]["install_requires"].split()]


@pytest.mark.parametrize("requirement", declared(), ids=lambda requirement: requirement.name)
def test_every_bound_is_kept(requirement: Requirement) -> None:
    assert requirement.specifier.contains(LOCKED[canonicalize_name(requirement.name)])


def test_what_the_packages_need_is_locked_too() -> None:
    for name in LOCKED:
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert canonicalize_name(needed.name) in LOCKED, f"{name} needs {needed.name}"


def test_every_line_is_a_version_or_a_hash() -> None:
    lines = [line for line in LOCK.splitlines() if not line.startswith("#")]
    pattern = r"[a-z0-9-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?"
    assert all(re.fullmatch(pattern, line) for line in lines)
    assert len(re.findall(r"^[a-z].*\n    --hash", LOCK, re.MULTILINE)) == len(LOCKED)


def test_the_image_is_made_from_it() -> None:
    built = (ROOT / "deploy/Dockerfile").read_text("utf-8")
    assert "--require-hashes -r deploy/requirements.lock" in built
    assert "--no-deps ." in built
