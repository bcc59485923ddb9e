"""Words with a fixed set of values, which requests and questions use."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """How probabilities are read."""

    AUTO = "auto"
    LOGPROBS = "logprobs"
    VERBAL = "verbal"


class Privacy(StrEnum):
    """What may be done with a state, and kept of an answer."""

    STANDARD = "standard"
    STRICT = "strict"


class Sampling(StrEnum):
    """How the decision of a label came to be labelled."""

    RANDOM = "random"
    QUEUE = "queue"
    OTHER = "other"


class CoveragePer(StrEnum):
    """Among which answers a prediction set holds the true one as often as promised."""

    # Among all answers together.
    ANSWER = "answer"
    # Among the answers of each true option by itself.
    OPTION = "option"


class TaskKind(StrEnum):
    """What a label of a question is: a class, yes or no, or whether its value is right."""

    CLASSES = "classes"
    YES_NO = "yes_no"
    RIGHTNESS = "rightness"
