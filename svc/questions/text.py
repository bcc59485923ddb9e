"""`text`: words that stand in the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from svc import limits
from svc.questions.extraction import Extraction, ExtractionSchema, answered, labelled
from svc.questions.kit import WholeField
from svc.shapes import TEXT, WORDS, Json

# How many bytes a character takes at most in a call about an answer: an emoji, or a quotation mark
# that is escaped there, as the text is quoted, and once more in the call's JSON.
_BYTES_A_CHAR = 4

# How many characters of text take about as many output tokens as one label of a reply.
CHARS_PER_LABEL = 16


@dataclass(frozen=True, kw_only=True)
class Text(Extraction):
    """A text of at most `max_length` characters."""

    type = "text"
    json_type = "string"
    guidance = "Give the words as they stand in the input."
    label_schema = labelled(WORDS)
    answer_schema = answered(TEXT)

    max_length: int = limits.TEXT_DEFAULT_LENGTH

    def valid(self, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > self.max_length:
            raise ValueError(f"must be text of 1 to {self.max_length} characters")
        if any("\ud800" <= character <= "\udfff" for character in value):
            # No database or file could store it.
            raise ValueError("must not hold half of a surrogate pair")
        return value

    def same(self, value: str, other: str) -> bool:
        """Whether both are the same text, apart from case and extra white space."""
        return _words(value) == _words(other)

    def all_agree(self, labels: Sequence[str | None]) -> bool:
        """Whether all are the same text, see `same`; each is taken apart once."""
        first, *others = (None if label is None else _words(label) for label in labels)
        return all(first == other for other in others)

    @property
    def allowed(self) -> str:
        return f"text of at most {self.max_length} characters"

    @property
    def schema_bounds(self) -> Json:
        return {"minLength": 1, "maxLength": self.max_length}

    @property
    def reply_labels(self) -> int:
        return 1 + self.max_length // CHARS_PER_LABEL

    @property
    def spoken_bytes(self) -> int:
        return _BYTES_A_CHAR * self.max_length

    def definition(self) -> Mapping[str, Any]:
        return {"nullable": self.nullable, "max_length": self.max_length}


def _words(text: str) -> list[str]:
    """What is left of it without case and extra white space."""
    return text.casefold().split()


class TextSchema(ExtractionSchema):
    model = Text
    max_length = WholeField(
        *limits.TEXT_MAX_LENGTH, description="The most characters of the value."
    )
