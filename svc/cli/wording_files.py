"""Files of other wordings for questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from svc import files, jsontext
from svc.engine.challenged_request import worded
from svc.errors import ApiError, SettingsError
from svc.evals import Words
from svc.phrases import reason
from svc.questions import Question


def read_wordings(path: str) -> list[str]:
    """A JSON list of instructions. Raises `SettingsError`."""
    return list(_texts(_read(path), path))


def read_words(path: str) -> dict[str, Words]:
    """Other wordings by question key. Raises `SettingsError`.

    A question has a list of instructions that mean the same, or an object with such a list as
    `same` and instructions that mean the opposite as `denied`.
    """
    value = _read(path)
    if not isinstance(value, dict):
        raise SettingsError(f"wordings {path!r}: must be an object of question key to wordings")
    return {key: _words(one, f"{path!r}, question {key[:100]!r}") for key, one in value.items()}


def read_question(path: str, present: Question) -> str:
    """The JSON of a question in a file, whose labels are those of the `present` wording.

    Raises `SettingsError`.
    """
    where, text = f"wording {path!r}", jsontext.dumps(_read(path))
    try:
        question = worded(text)
    except ApiError as error:
        raise SettingsError(f"{where}: {error.message}") from None
    if question.type != present.type or _options(question) != _options(present):
        raise SettingsError(
            f"{where}: it must be of type {present.type} with the same options as the question, so "
            "that a label counts for both"
        )
    if question.when or question.rules or question.depends_on:
        raise SettingsError(
            f"{where}: it has when, rules or depends_on; those of the callers' question hold"
        )
    return text


def _options(question: Question) -> list[str]:
    """What labels may name."""
    return question.option_names or sorted(question.definition().get("options", ()))


def _words(value: Any, where: str) -> Words:
    if not isinstance(value, dict):
        return Words(_texts(value, where))
    denied = value.get("denied", "")
    if not isinstance(denied, str) or not value.keys() <= {"same", "denied"}:
        raise SettingsError(f"wordings {where}: may have same, a list, and denied, a text")
    return Words(_texts(value["same"], where) if "same" in value else (), denied)


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise SettingsError(f"wordings {where}: must be a list of at least one text")
    if not all(isinstance(one, str) and one.strip() for one in value):
        raise SettingsError(f"wordings {where}: must be texts that are not blank")
    return tuple(value)


def _read(path: str) -> Any:
    try:
        return files.read_json(Path(path))
    except OSError as error:
        problem = reason(error)
    except ApiError as error:
        problem = error.message
    raise SettingsError(f"wordings {path!r}: {problem}")
