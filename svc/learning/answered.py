"""What stored decisions answered: each question's top answer, as text, and how sure it was."""

from __future__ import annotations

import json
from dataclasses import dataclass

from svc.learning.wordings import Wordings
from svc.questions import DECIMALS
from svc.records import Answer, Source
from svc.store import QuestionVersions
from svc.store.decisions import AuditEntry

# To find and parse an exact question takes about as long as to write so many characters of a page.
_FOUND_CHARS = 400


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question: `text` is equal for equal answers, as drift counts them."""

    key: str
    text: str
    confidence: float


class Answers:
    """Reads the answers of decisions that one request is about."""

    def __init__(self, versions: QuestionVersions) -> None:
        self._wordings = Wordings(versions)

    @property
    def chars_read(self) -> int:
        """How many characters of exact questions were read, each of which counts for some more."""
        return self._wordings.chars + _FOUND_CHARS * self._wordings.read

    def of(self, entry: AuditEntry, only: str | None = None) -> list[Answered]:
        """The answers to all questions that were not skipped, or to the one with this key.

        Raises `StorageError`.
        """
        question_ids = json.loads(entry.question_ids)
        fields = json.loads(entry.answers)
        found = []
        for (key, shown), question_id in zip(fields.items(), question_ids, strict=True):
            wanted = only is None or key == only
            if wanted and Answer.kept(shown).source is not Source.SKIPPED:
                question = self._wordings.get(question_id).question
                label, confidence = question.shown(shown)
                found.append(Answered(key, question.named(label), round(confidence, DECIMALS)))
        return found


def spoken(label: str) -> str:
    """The JSON of a label in the form of `Answered.text`."""
    value = json.loads(label)
    return value if isinstance(value, str) else normal(label)


def normal(text: str) -> str:
    """An answer as callers write it in the form of `Answered.text`: lists in sorted order."""
    try:
        value = json.loads(text) if text.startswith("[") else None
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return text
    return json.dumps(sorted(value), ensure_ascii=False)
