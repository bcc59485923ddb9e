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


class TaskKind(StrEnum):
    """What a label of a question is: a class, yes or no, or whether its value is right."""

    CLASSES = "classes"
    YES_NO = "yes_no"
    RIGHTNESS = "rightness"
