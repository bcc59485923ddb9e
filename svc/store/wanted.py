"""Which decisions of a project are looked for, as conditions of a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# All in one pass over the tags of a row, none of which has a name twice.
_TAGS = "(SELECT count(*) FROM json_each(tags) WHERE (key, value) IN (VALUES {})) = {}"
# Several models of one decision are joined by commas.
_MODEL = "instr(',' || model || ',', ',' || ? || ',')"
_LABELLED = "EXISTS (SELECT 1 FROM labels WHERE decision_seq = decisions.seq{})"

Condition = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is looked for; None, or no tag, stands for any.

    `since` and `until`, not included, are in unix milliseconds. `labelled` is about the question
    `question`, where one is named.
    """

    ref: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    model: str | None = None
    since: int | None = None
    until: int | None = None
    labelled: bool | None = None
    question: str | None = None

    def of(self, project: str) -> Condition:
        """The condition that an index finds: the project, and the ref where one is given."""
        if self.ref is None:
            return "project = ?", (project,)
        return "project = ? AND ref = ?", (project, self.ref)

    def conditions(self) -> Iterator[Condition]:
        """Further conditions, which are looked at row by row."""
        if self.tags:
            pairs = ", ".join(["(?, ?)"] * len(self.tags))
            values = tuple(text for pair in self.tags for text in pair)
            yield _TAGS.format(pairs, len(self.tags)), values
        if self.model is not None:
            yield _MODEL, (self.model,)
        if self.labelled is not None:
            of_question = "" if self.question is None else " AND key = ?"
            word = "" if self.labelled else "NOT "
            key = () if self.question is None else (self.question,)
            yield word + _LABELLED.format(of_question), key


ANY = Wanted()
