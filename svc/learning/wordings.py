"""Exact questions: the most recent wording, and those that one request is about."""

from __future__ import annotations

from typing import NamedTuple

from svc import limits
from svc.errors import InvalidRequest, NotFound
from svc.phrases import quoted
from svc.questions import TYPES, Question, from_definition
from svc.store import QuestionVersion, QuestionVersions


def latest(versions: QuestionVersions, project: str, key: str) -> tuple[QuestionVersion, Question]:
    """The most recent wording of a project's question. Raises `NotFound` and `StorageError`."""
    version = versions.latest(project, key)
    if version is None:
        raise NotFound(f"project {quoted(project)} was never asked a question {quoted(key)}")
    return version, from_definition(version.definition)


def latest_with_options(
    versions: QuestionVersions, project: str, key: str
) -> tuple[QuestionVersion, Question]:
    """The same of a question whose labels name options or levels; else `InvalidRequest`."""
    version, question = latest(versions, project, key)
    if not question.names_options:
        allowed = [name for name, schema in TYPES.items() if schema.model.names_options]
        raise InvalidRequest(
            f"question {quoted(key)} is of type {question.type}; rates are told of questions whose "
            f"answers are few: {', '.join(allowed)}"
        )
    return version, question


class Wording(NamedTuple):
    """An exact question as it is stored, and parsed."""

    version: QuestionVersion
    question: Question


class Wordings:
    """Reads each of them once, as long as they are not too long together to be kept.

    `read` counts the definitions that were read, and `chars` their characters.
    """

    def __init__(self, versions: QuestionVersions) -> None:
        self._versions = versions
        self._kept: dict[int, Wording] = {}
        self.read = self.chars = 0

    def get(self, question_id: int) -> Wording:
        """The wording in a row to which decisions refer. Raises `StorageError`."""
        kept = self._kept.get(question_id)
        if kept is not None:
            return kept
        version = self._versions.get(question_id)
        # A foreign key makes sure that it is there.
        assert version is not None
        found = Wording(version, from_definition(version.definition))
        self.read += 1
        self.chars += len(version.definition)
        if self.chars <= limits.WORDINGS_KEPT_CHARS:
            self._kept[question_id] = found
        return found
