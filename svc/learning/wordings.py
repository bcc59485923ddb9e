"""The most recent wording of a question, which reports are about."""

from __future__ import annotations

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
