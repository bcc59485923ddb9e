"""Questions that a command is given by name: a file of any form that has some, or a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from svc import files
from svc.assets import recipes
from svc.errors import ApiError, SettingsError
from svc.jsontext import JsonObject
from svc.phrases import reason
from svc.questions import Question
from svc.schemas import load_questions


@dataclass(frozen=True, slots=True)
class Named:
    """Questions and where they come from: `fields` as `POST /v1/decide` takes them, and checked.

    `states` are those of an eval set, or that of a request.
    """

    name: str
    fields: JsonObject
    questions: Mapping[str, Question]
    states: Sequence[Any] = ()


def read_named(name: str) -> Named:
    """The questions of a file or, where there is no such file, of a recipe.

    A file holds a questions object, a whole request, a recipe or an eval set. Raises
    `SettingsError`.
    """
    try:
        value = files.read_json(Path(name))
    except (FileNotFoundError, IsADirectoryError):
        return _recipe(name, f"questions {name[:100]!r}: there is no such file, and no recipe of")
    except OSError as error:
        raise SettingsError(f"questions {name!r}: {reason(error)}") from None
    except ApiError as error:
        raise SettingsError(f"questions {name!r}: {error.message}") from None
    return replace(_checked(name, _questions(value, Path(name).stem)), states=_states(value))


def read_recipe(name: str) -> Named:
    """The questions of a recipe. Raises `SettingsError`."""
    return _recipe(name, f"--recipe {name[:100]!r}: there is no recipe of")


def _recipe(name: str, without: str) -> Named:
    """The questions of a recipe; `without` begins the message where there is none."""
    found = recipes()
    if name not in found:
        close = get_close_matches(name, found, n=1)
        meant = f"did you mean {close[0]!r}?" if close else "`svc recipe list` shows all"
        raise SettingsError(f"{without} that name; {meant}")
    return _checked(name, found[name]["questions"])


def _questions(value: object, stem: str) -> object:
    """The questions object in what a file holds; the question of an eval set goes by its name."""
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("rows"), list) and isinstance(value.get("question"), dict):
        return {stem: value["question"]}
    inner = value.get("questions")
    return inner if isinstance(inner, dict) and "type" not in inner else value


def _states(value: Any) -> list[Any]:
    if not isinstance(value, dict):
        return []
    rows = value.get("rows") if "question" in value else [value]
    return [row["state"] for row in rows or () if isinstance(row, dict) and "state" in row]


def _checked(name: str, fields: object) -> Named:
    try:
        questions = load_questions(fields)
    except ApiError as error:
        raise SettingsError(f"questions {name!r}: {error.message}") from None
    assert isinstance(fields, dict)
    return Named(name, fields, questions)
