"""Asks models as one decision needs it: with its config, mode, option orders and images."""

from __future__ import annotations

from dataclasses import dataclass

from svc.deadline import Deadline
from svc.engine.ask import Asker, ModelRequest
from svc.engine.plans import Group, ModelResult
from svc.engine.prompt import PromptInput
from svc.engine.setup import Setup
from svc.records import Model

# The instructions and the answers of earlier stages.
Earlier = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DecisionAsker:
    """Asks models about `text`, with the answers of earlier stages before it."""

    asker: Asker
    setup: Setup
    text: str
    earlier: Earlier = ()

    def ask(self, model: Model, group: Group, deadline: Deadline) -> ModelResult:
        """What one model answers to a group of questions. Raises what `Asker.ask` raises."""
        return self.asker.ask(self._asked(model, group), self.setup.ledger, deadline)

    def kept(self, model: Model, group: Group) -> ModelResult | None:
        """What one model answered to the same before, None where that is not remembered."""
        return self.asker.kept(self._asked(model, group))

    def _asked(self, model: Model, group: Group) -> ModelRequest:
        setup, request = self.setup, self.setup.request
        questions = tuple(group.questions.values())
        think = request.think or group.think
        prompt_input = PromptInput(
            setup.pin, questions, self.text, self.earlier, setup.images, think, setup.salt
        )
        return ModelRequest(
            model,
            prompt_input,
            setup.mode,
            setup.debias,
            setup.project,
            setup.strict,
            setup.project_key,
            setup.ledger.caller,
        )
