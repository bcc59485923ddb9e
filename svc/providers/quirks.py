"""What is learnt about single models: which parameters they refuse."""

from __future__ import annotations

import threading
from collections import OrderedDict

NO_LOGPROBS = "no_logprobs"  # no field of a body: whoever insists on them may still ask
REQUIRE_PARAMETERS = "require_parameters"
MODELS = 10_000  # model ids remembered; callers choose ids, so memory must end somewhere
_NONE: frozenset[str] = frozenset()


class Quirks:
    """Parameters refused per full model id, for the life of the process; safe across threads."""

    def __init__(self, models: int = MODELS) -> None:
        self._most = models
        self._refused: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, model_id: str) -> frozenset[str]:
        """Every parameter that the model is known to refuse."""
        return self._refused.get(model_id, _NONE)

    def has_logprobs(self, model_id: str) -> bool:
        """False once the model has shown that it has no usable label probabilities."""
        return NO_LOGPROBS not in self.of(model_id)

    def refuse(self, model_id: str, parameter: str) -> None:
        """Remember one refusal; the model learnt about longest ago is forgotten first."""
        with self._lock:
            self._refused[model_id] = self.of(model_id) | {parameter}
            self._refused.move_to_end(model_id)
            if len(self._refused) > self._most:
                self._refused.popitem(last=False)
