"""The figures of `svc shadow` as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from svc import jsontext
from svc.batch import Agreement
from svc.cli.tables import table
from svc.jsontext import JsonObject
from svc.phrases import printable, shortened

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
# The most labels of a confusion matrix; of more, the most frequent confusions are listed.
MATRIX = 8
# How many confusions are listed.
PAIRS = 10
# The most characters of a label in a table.
_CELL = 16
# The most characters of a state that is shown.
_EXCERPT = 100


def report(key: str, agreement: Agreement, excerpts: Mapping[int, str]) -> list[str]:
    """The lines about one question; `excerpts` are states by line number."""
    skipped = f", {agreement.skipped:,} skipped" if agreement.skipped else ""
    if not agreement.answers:
        return [f"{key}: no label to compare with{skipped}"]
    agreeing = sum(agreement.agreeing)
    share = agreeing / agreement.answers
    lines = [f"{key}: {share:.1%} agree, {agreeing:,} of {agreement.answers:,}{skipped}"]
    lines.append(
        f"  calibration: ECE {agreement.ece:.3f}, Brier {agreement.brier / agreement.answers:.3f}"
    )
    lines += _automation(agreement)
    if agreement.confusable:
        lines += _confusion(agreement)
    lines += _disagreements(agreement, excerpts)
    return lines


def report_json(agreement: Agreement) -> JsonObject:
    """The same about one question as JSON, without states."""
    if not agreement.answers:
        return {"answers": 0, "skipped": agreement.skipped}
    confusion = [
        {"label": label, "answer": answer, "times": times}
        for (label, answer), times in agreement.confusion.most_common()
    ]
    names = ("line", "confidence", "label", "answer")
    return {
        "answers": agreement.answers,
        "skipped": agreement.skipped,
        "agreeing": sum(agreement.agreeing),
        "ece": agreement.ece,
        "brier": agreement.brier / agreement.answers,
        "automated": [_reached(agreement, low) for low in THRESHOLDS],
        "promises": agreement.promises,
        "confusion": confusion,
        "examples": [dict(zip(names, one, strict=True)) for one in agreement.examples],
    }


def _reached(agreement: Agreement, low: float) -> JsonObject:
    answers, agreeing = agreement.reaching(low)
    return {"confidence": low, "answers": answers, "agreeing": agreeing}


def excerpt(state: Any) -> str:
    """The beginning of a state, in one line."""
    return printable(jsontext.as_text(state)[:_EXCERPT], " ")


def _automation(agreement: Agreement) -> list[str]:
    head, rows = ("confidence", "answers", "of them agree"), []
    for low in THRESHOLDS:
        answers, agreeing = agreement.reaching(low)
        agree = f"{agreeing / answers:.1%}" if answers else "-"
        rows.append((f"{low:.2f}", f"{answers / agreement.answers:.1%}", agree))
    promises = [f"  {_promise(promise)}" for promise in agreement.promises]
    return ["  automated from this confidence on:", *_indented(table(head, rows)), *promises]


def _promise(promise: Mapping[str, Any]) -> str:
    if promise["min_confidence"] is None:
        return f"{promise['target']:.0%} right: cannot be promised, {promise['reason']}"
    kept = f"min_confidence {promise['min_confidence']:g} keeps it, {promise['automated']:.1%}"
    return f"{promise['target']:.0%} right: {kept} automated (95% sure)"


def _confusion(agreement: Agreement) -> list[str]:
    labels = sorted({label for pair in agreement.confusion for label in pair})
    if len(labels) > MATRIX:
        return _confused_pairs(agreement)
    head = ["label \\ answer", *map(_cut, labels)]
    rows = []
    for label in labels:
        counts = (f"{agreement.confusion[label, answer]:,}" for answer in labels)
        rows.append([_cut(label), *counts])
    return ["  confusion:", *_indented(table(head, rows))]


def _confused_pairs(agreement: Agreement) -> list[str]:
    confusions = agreement.confusion.most_common()
    wrong = [(pair, count) for pair, count in confusions if pair[0] != pair[1]]
    if not wrong:
        return []
    rows = [(_cut(label), _cut(answer), f"{count:,}") for (label, answer), count in wrong[:PAIRS]]
    lines = table(("label", "answer", "times"), rows, text={0, 1})
    return ["  most frequent confusions:", *_indented(lines)]


def _disagreements(agreement: Agreement, excerpts: Mapping[int, str]) -> Iterator[str]:
    if agreement.examples:
        yield "  surest disagreements:"
    for line, confidence, label, answer in agreement.examples:
        words = f"label {_cut(label)}, answer {_cut(answer)} at {confidence:.2f}"
        yield f"    line {line:,}: {words}" + (f": {excerpts[line]}" if line in excerpts else "")


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _cut(text: str) -> str:
    return shortened(printable(text, " "), _CELL)
