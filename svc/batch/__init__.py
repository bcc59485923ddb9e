"""Many inputs, one a line: read, answered at the same time, and written in their order."""

from __future__ import annotations

from svc.batch.agreement import Agreement, add_up, check_labels, compare
from svc.batch.ahead import Ahead, ahead_of
from svc.batch.beside import RUN_SUFFIX
from svc.batch.children import ChildLost, forked
from svc.batch.forms import CSV, DELIMITERS, FORMATS, JSONL, TEXT, Form, Record, format_of
from svc.batch.inputs import STANDARD, Input, InputLine, open_input
from svc.batch.interruptions import Interruptions
from svc.batch.outputs import (
    RUN_ID,
    Appended,
    Output,
    check_rows,
    new_run_id,
    open_output,
    open_rows,
    run_id,
    run_of,
)
from svc.batch.progress import Progress, duration, rate_text
from svc.batch.retries import Retried, open_retried
from svc.batch.run import (
    FAILURES,
    AnswerLine,
    Kind,
    LineAnswer,
    Result,
    RunEnds,
    Tally,
    answer_line,
    write_all,
)
from svc.batch.texts import BrokenInput, Rows, check_encoding, lines_of
from svc.batch.workers import Workers

__all__ = [
    "CSV",
    "DELIMITERS",
    "FAILURES",
    "FORMATS",
    "JSONL",
    "RUN_ID",
    "RUN_SUFFIX",
    "STANDARD",
    "TEXT",
    "Agreement",
    "Ahead",
    "AnswerLine",
    "Appended",
    "BrokenInput",
    "ChildLost",
    "Form",
    "Input",
    "InputLine",
    "Interruptions",
    "Kind",
    "LineAnswer",
    "Output",
    "Progress",
    "Record",
    "Result",
    "Retried",
    "Rows",
    "RunEnds",
    "Tally",
    "Workers",
    "add_up",
    "ahead_of",
    "answer_line",
    "check_encoding",
    "check_labels",
    "check_rows",
    "compare",
    "duration",
    "forked",
    "format_of",
    "lines_of",
    "new_run_id",
    "open_input",
    "open_output",
    "open_retried",
    "open_rows",
    "rate_text",
    "run_id",
    "run_of",
    "write_all",
]
