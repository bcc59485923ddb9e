"""How a stored decision is shown, alone and in pages: its schema, and its JSON.

Answers are copied into it as the text that is stored. Parsing a thousand of them only to write them
again took most of a page's time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

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
        "As returned; under `privacy: strict` without extracted values and what `explain` says.",
    )
    wording_ids = Shown(
        array(COUNT),
        "For each of `answers`, in their order, the number of the exact question that was asked; "
        "`GET /v1/questions` has that of the newest wording.",
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
    """A decision as it was stored, its labels, and what was asked."""

    labels = Shown(array(GivenLabelSchema), "By question key, at most one each.")
    questions = Shown(
        mapping(OBJECT),
        "By key, each question as it was asked, in the form of `wording` in `GET /v1/questions`.",
    )


def entry_text(entry: AuditEntry) -> str:
    """The JSON of an entry."""
    facts = {name: getattr(entry.facts, name) for name in FACTS}
    facts["state_hash"] = entry.facts.state_hash.hex()
    head = jsontext.dumps({"id": entry.id, "created_at": entry.created_at, **facts})
    images = "" if entry.images is None else f',"images":{entry.images}'
    asked = f'"wording_ids":{entry.question_ids}'
    return f'{head[:-1]}{images},{asked},"tags":{entry.tags},"answers":{entry.answers}}}'


def with_labels(text: str, labels: list[GivenLabel]) -> str:
    """The JSON of an entry with its labels."""
    return f'{text[:-1]},"labels":[{",".join(map(_label, labels))}]}}'


def with_questions(text: str, entry: AuditEntry, definitions: Mapping[int, str]) -> str:
    """The JSON of an entry with what was asked; `definitions` are JSON, by their rows.

    One may be missing: that of a decision which was erased meanwhile.
    """
    rows = zip(json.loads(entry.answers), json.loads(entry.question_ids), strict=True)
    asked = ((key, definitions[row]) for key, row in rows if row in definitions)
    questions = ",".join(f"{jsontext.dumps(key)}:{definition}" for key, definition in asked)
    return f'{text[:-1]},"questions":{{{questions}}}}}'


def _label(given: GivenLabel) -> str:
    head = jsontext.dumps({"question": given.key})
    origin = {name: getattr(given, name) for name in ("created_at", "sampled", "chance")}
    return f'{head[:-1]},"label":{given.label},{jsontext.dumps(origin)[1:]}'
