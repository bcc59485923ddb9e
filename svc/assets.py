"""The files that are no code: folders outside the package, in an installed wheel too; recipes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from svc.jsontext import JsonObject

_PACKAGE = Path(__file__).resolve().parent


def folder(name: Literal["templates", "static"]) -> Path:
    """Where the files of the folder `name` are: in a wheel `svc/_<name>`, else beside `svc`."""
    packed = _PACKAGE / f"_{name}"
    return packed if packed.is_dir() else _PACKAGE.parent / name


def recipes() -> dict[str, JsonObject]:
    """Every recipe by name: `description`, one line, and `questions`."""
    paths = sorted((_PACKAGE / "recipes").glob("*.json"), key=lambda path: path.name)
    return {path.stem: json.loads(path.read_text("utf-8")) for path in paths}
