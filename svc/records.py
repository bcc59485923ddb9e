"""What passes between the rooms: the answer to a question, and the decision that holds them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Self

from svc import limits
from svc.jsontext import JsonObject
from svc.pins import PINS
from svc.shapes import AMOUNT, FLAG, SHA256, TEXT, Json, nullable, one_of
from svc.terms import Mode, Privacy
from svc.usage import NO_DETAILS, TokenDetails

# What the audit log holds in place of an extracted value under `privacy: strict`.
REDACTED = "[redacted]"

# The modes that a request may ask for, all but auto: an answer was read in one of them.
ANSWERED_MODES = (Mode.LOGPROBS.value, Mode.VERBAL.value)


@dataclass(frozen=True, slots=True)
class Model:
    """One model: `id` as the caller wrote it, `name` as its provider knows it."""

    id: str
    provider: str
    name: str


class Source(StrEnum):
    """Who answered a question."""

    MODELS = "models"
    RULE = "rule"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question; `fields` are what the caller reads.

    `top` is the answer as a checked label (option key, level index, boolean, selected keys, value)
    and `confidence` how sure the calibrated probabilities are of it; a skipped question has
    neither. `extracted` says that the fields hold a value which was taken from the state.
    """

    source: Source
    fields: Mapping[str, Any]
    top: Any = None
    confidence: float = 0.0
    abstains: bool = False
    extracted: bool = False

    @classmethod
    def kept(cls, fields: Mapping[str, Any]) -> Self:
        """The answer that was stored as these fields, as far as they tell."""
        if fields.get("skipped"):
            return cls(Source.SKIPPED, fields)
        return cls(Source.RULE if "rule" in fields else Source.MODELS, fields)

    def plus(self, **fields: Any) -> Self:
        """The same answer with more fields."""
        return replace(self, fields={**self.fields, **fields})

    def redacted(self) -> Self:
        """The same answer without any value or name that was taken from the state."""
        if self.extracted:
            return replace(self, fields={**self.fields, "value": REDACTED}, top=None)
        return self.plus(explain={}) if "explain" in self.fields else self

    @property
    def tells_of_state(self) -> bool:
        """Whether it has, or had, what `redacted` takes away."""
        return self.extracted or "explain" in self.fields


SKIPPED = Answer(Source.SKIPPED, {"skipped": True})

# What stands in place of an answer that no model could give, where the others are given.
REFUSED = SKIPPED.plus(refused=True)


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question of a decision: its exact wording and what the models said.

    `digest` is the SHA-256 of the exact question, `definition` its JSON. `reading` is a JSON
    value, None where no model was asked; `top` and `confidence` are its top answer and that one's
    probability, as drift counts them. `type` is the question's type.
    """

    key: str
    digest: bytes
    definition: str
    reading: Any
    top: str = ""
    confidence: float = 0.0
    type: str = ""


def column(form: Json, description: str = "", **kwargs: Any) -> Any:
    """A column of a decision: its JSON schema, and what it means to readers of the audit log."""
    return field(metadata={"form": form, "description": description}, **kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFacts:
    """The part of a decision that has a column each in the database, in the audit log's order.

    A new column is a field here and a step in the database's migrations.
    """

    project: str = column(TEXT, "The calibration namespace used.")
    api_key: str | None = column(nullable(TEXT), "The id of the key, where there are keys.")
    state_hash: bytes = column(SHA256, "Salted SHA-256 of the state, which itself is not kept.")
    model: str = column(TEXT, "The full ids of the models that answered, joined by commas.")
    mode: str = column(
        one_of(ANSWERED_MODES), "The mode that answered; `verbal` when any question was."
    )
    config: str = column(one_of(PINS), "The pinned config used.")
    privacy: str = column(one_of(privacy.value for privacy in Privacy))
    latency_ms: float = column(AMOUNT, "Milliseconds over all model calls; 0 when cached.")
    cost_usd: float = column(AMOUNT, "What the models cost, in dollars; 0 when cached.")
    cached: bool = column(FLAG, "Whether every call was served from the cache.")
    provider_models: str | None = column(
        nullable(TEXT),
        "What providers call the models that were asked (`model` and `system_fingerprint` of their "
        "replies), joined by `, `; of cached answers as it was then. The first names that fit into "
        f"{limits.PROVIDER_NAMES_CHARS:,} characters; null when they said nothing.",
        default=None,
    )
    ref: str | None = column(
        nullable(TEXT), "The caller's own id of what was decided about.", default=None
    )

    @property
    def is_strict(self) -> bool:
        """Whether extracted values may not be kept."""
        return self.privacy == Privacy.STRICT


# The columns by name, in the same order.
FACTS = {one.name: one for one in fields(DecisionFacts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(DecisionFacts):
    """Everything that came of a request; it has an `id` once it is stored."""

    answers: Mapping[str, Answer]  # by question key, in the request's order
    questions: tuple[AskedQuestion, ...]
    images: tuple[bytes, ...] = ()  # salted SHA-256 of each
    tags: Mapping[str, str] = field(default_factory=dict)
    debiased: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    details: TokenDetails = NO_DETAILS
    id: str = ""

    def response(self) -> JsonObject:
        """The body of the response to the caller."""
        given = {"ref": self.ref, "tags": self.tags}
        return {
            "id": self.id,
            **{name: value for name, value in given.items() if value},
            "model": self.model,
            "mode": self.mode,
            "latency_ms": self.latency_ms,
            "cost_usd": self.cost_usd,
            "cached": self.cached,
            "debiased": self.debiased,
            "project": self.project,
            "config": self.config,
            "answers": {key: answer.fields for key, answer in self.answers.items()},
        }

    def redacted(self) -> Self:
        """The same decision without any value that was taken from the state."""
        return replace(self, answers={key: one.redacted() for key, one in self.answers.items()})


@dataclass(frozen=True, slots=True)
class Challenger:
    """A model, or another wording of a question, that some decisions are also asked of.

    `digest` is that of the exact question that callers ask under `key`. `model` is None for the one
    that answers them, `wording` the JSON of a question as callers write it, None for the same.
    `share` is the part of the decisions.
    """

    id: int
    project: str
    key: str
    digest: bytes
    model: str | None
    wording: str | None
    share: float


@dataclass(frozen=True, slots=True)
class ChallengerAnswer:
    """What a challenger answered to the question of a decision that has an id.

    `p` is the raw reading, `fields` what the caller would read, and `answered_by` names the model
    and the mode; all are None where there is the code of an `error`.
    """

    challenger: int
    decision_id: str
    p: tuple[float, ...] | None
    fields: Mapping[str, Any] | None
    cost_usd: float = 0.0
    latency_ms: float = 0.0
    error: str | None = None
    answered_by: str | None = None
