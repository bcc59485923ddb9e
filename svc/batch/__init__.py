"""Many inputs, one a line: read, answered at the same time, and written in their order."""

from __future__ import annotations

from svc.batch.agreement import Agreement, add_up, check_labels, compare
from svc.batch.children import ChildLost, forked
from svc.batch.inputs import STANDARD, Input, InputLine, open_input
from svc.batch.outputs import Appended, Output, open_output
from svc.batch.progress import Progress, duration, rate_text
from svc.batch.run import (
    FAILURES,
    AnswerLine,
    LineAnswer,
    Result,
    RunEnds,
    Tally,
    answer_line,
    write_all,
)
from svc.batch.workers import Workers

__all__ = [
    "FAILURES",
    "STANDARD",
    "Agreement",
    "AnswerLine",
    "Appended",
    "ChildLost",
    "Input",
    "InputLine",
    "LineAnswer",
    "Output",
    "Progress",
    "Result",
    "RunEnds",
    "Tally",
    "Workers",
    "add_up",
    "answer_line",
    "check_labels",
    "compare",
    "duration",
    "forked",
    "open_input",
    "open_output",
    "rate_text",
    "write_all",
]
