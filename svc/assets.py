"""The folders that stand outside the package, although an installed wheel contains them too."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).resolve().parent


def folder(name: Literal["templates", "static"]) -> Path:
    """Where the files of the folder `name` are: in a wheel `svc/_<name>`, else beside `svc`."""
    packed = _PACKAGE / f"_{name}"
    return packed if packed.is_dir() else _PACKAGE.parent / name
