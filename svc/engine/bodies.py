"""The calls of a decision before it is made: what they show a model, and their bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from svc.engine.plans import Group, grouped
from svc.engine.prompt import Prompt, PromptInput, build, labels_of
from svc.jsontext import dumps
from svc.pins import Pin
from svc.providers import Way
from svc.questions import Question
from svc.schemas import DecisionRequest

# In which way a model is asked questions, and whether to think about them.
WayOf = Callable[[Sequence[Question], bool], Way]

# The bytes of a call in a batch besides its prompt: its id, the model, and what it may reply.
_AROUND_BYTES = 300


@dataclass(frozen=True, slots=True)
class Bodies:
    """How many calls a decision makes, and the bytes that all have together without the state."""

    calls: int = 0
    size: int = 0

    def __add__(self, other: Bodies) -> Bodies:
        return Bodies(self.calls + other.calls, self.size + other.size)

    def at_most(self, calls: int) -> Bodies:
        """The same, or so many of these calls."""
        return self if self.calls <= calls else Bodies(calls, self.size * calls // self.calls)

    def on_disk(self, rows: int, states: int) -> int:
        """About how much of the disk those of `rows` take, whose JSON has `states` bytes."""
        return (self.size * rows + self.calls * states) * 4 // 3  # as Base64, once encrypted


def bodies_at_most(request: DecisionRequest, pin: Pin, orders: int, way_of: WayOf) -> Bodies:
    """The calls to one model, where no question is skipped or answered by a rule.

    `way_of` says in which way it is asked questions, and whether it is to think about them.
    """
    found = Bodies()
    for keys in request.stages:
        questions = {key: request.questions[key] for key in keys}
        earlier = _bytes_of_earlier(request, questions)
        for group in grouped(questions):
            think = group.think or request.think
            way = way_of(list(group.questions.values()), think)
            prompts = prompts_of(pin, group, think, way) * orders_of(group, orders)
            sizes = [prompt.size + earlier + _AROUND_BYTES for prompt in prompts]
            found += Bodies(len(sizes), sum(sizes))
    return found


def _bytes_of_earlier(request: DecisionRequest, questions: Mapping[str, Question]) -> int:
    """How many bytes what was asked and answered before takes at most in a call about these."""
    needed = frozenset[str]().union(*(question.dependencies for question in questions.values()))
    before = [request.questions[key] for key in needed]
    return sum(len(dumps(one.instructions).encode()) + one.spoken_bytes for one in before)


def orders_of(group: Group, orders: int) -> int:
    """How many orders a group is asked in: one where none of its questions can be reversed."""
    return orders if any(question.reversible for question in group.questions.values()) else 1


def prompts_of(pin: Pin, group: Group, think: bool, way: Way) -> list[Prompt]:
    """What a model is shown in one order, without the state: one prompt, or one for each label."""
    material = PromptInput(pin, tuple(group.questions.values()), "", think=think)
    if way is not Way.SINGLE:
        return [build(material, way, backwards=False)]
    lines = labels_of(material, backwards=False)
    return [build(material, way, backwards=False, only=line) for line in lines]
