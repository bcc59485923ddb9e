"""How a stored decision is shown, alone and in pages: its schema, and its JSON.

Answers are copied into it as the text that is stored. Parsing a thousand of them only to write them
again took most of a page's time.
"""

from __future__ import annotations

from svc import jsontext
from svc.records import FACTS
from svc.schemas import (
    DecidedSchema,
    ResponseSchema,
    Shown,
    any_answer,
    any_label,
    columns,
    redacted_answer,
)
from svc.shapes import (
    COUNT,
    OBJECT,
    PROBABILITY,
    SHA256,
    TEXT,
    Named,
    array,
    mapping,
    nullable,
    one_of,
)
from svc.store import GivenLabel
from svc.store.decisions import AuditEntry
from svc.terms import Sampling
from svc.web import systemone


def any_stored_answer() -> Named:
    """The JSON schema of an answer as it was stored, in the shape of any route."""
    untyped = {"not": {"required": ["type"]}, "description": "As stored before answers had a type."}
    forms = [any_answer, systemone.any_answer, redacted_answer(systemone.ALIASES)]
    return Named("StoredAnswer", {"anyOf": [*forms, Named("UntypedAnswer", {**OBJECT, **untyped})]})


class AuditEntrySchema(DecidedSchema):
    """A decision as it was stored."""

    class Meta(ResponseSchema.Meta):
        include = columns(*FACTS)

    created_at = Shown(COUNT, "Milliseconds since the epoch.")
    tags = Shown(mapping(TEXT), "As the caller gave them.")
    answers = Shown(
        mapping(any_stored_answer),
        "As returned, without extracted values under `privacy: strict`.",
    )
    images = Shown(array(SHA256), "Salted SHA-256 of each image as sent.", optional=True)


class GivenLabelSchema(ResponseSchema):
    """The true answer that somebody gave to a question of a decision."""

    question = Shown(TEXT, "The question's key.")
    label = Shown(any_label, "The true answer.")
    created_at = Shown(
        nullable(COUNT), "When it was given, in milliseconds since the epoch; null if not known."
    )
    sampled = Shown(
        nullable(one_of(Sampling)), "How the decision came to be labelled; null if nobody said."
    )
    chance = Shown(
        nullable(PROBABILITY), "The chance with which it was drawn; null if nobody said."
    )


class StoredDecisionSchema(AuditEntrySchema):
    """A decision as it was stored, and its labels."""

    labels = Shown(array(GivenLabelSchema), "By question key, at most one each.")


def entry_text(entry: AuditEntry) -> str:
    """The JSON of an entry."""
    facts = {name: getattr(entry.facts, name) for name in FACTS}
    facts["state_hash"] = entry.facts.state_hash.hex()
    head = jsontext.dumps({"id": entry.id, "created_at": entry.created_at, **facts})
    images = "" if entry.images is None else f',"images":{entry.images}'
    return f'{head[:-1]}{images},"tags":{entry.tags},"answers":{entry.answers}}}'


def with_labels(text: str, labels: list[GivenLabel]) -> str:
    """The JSON of an entry with its labels."""
    return f'{text[:-1]},"labels":[{",".join(map(_label, labels))}]}}'


def _label(given: GivenLabel) -> str:
    head = jsontext.dumps({"question": given.key})
    origin = {name: getattr(given, name) for name in ("created_at", "sampled", "chance")}
    return f'{head[:-1]},"label":{given.label},{jsontext.dumps(origin)[1:]}'
