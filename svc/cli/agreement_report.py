"""The figures of `svc shadow` as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from svc.batch import Agreement
from svc.cli.tables import table

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
# The most labels of a confusion matrix; of more, the most frequent confusions are listed.
MATRIX = 8
# How many confusions are listed.
PAIRS = 10
# The most characters of a label in a table.
_CELL = 16


def report(key: str, found: Agreement, excerpts: Mapping[int, str]) -> list[str]:
    """The lines about one question; `excerpts` are states by line number."""
    skipped = f", {found.skipped:,} skipped" if found.skipped else ""
    if not found.answers:
        return [f"{key}: no label to compare with{skipped}"]
    agreeing = sum(found.agreeing)
    share = agreeing / found.answers
    lines = [f"{key}: {share:.1%} agree, {agreeing:,} of {found.answers:,}{skipped}"]
    lines.append(f"  calibration: ECE {found.ece:.3f}, Brier {found.brier / found.answers:.3f}")
    lines += _automation(found)
    if found.confusable:
        lines += _confusion(found)
    lines += _disagreements(found, excerpts)
    return lines


def _automation(found: Agreement) -> list[str]:
    head, rows = ("confidence", "answers", "of them agree"), []
    for low in THRESHOLDS:
        answers, agreeing = found.reaching(low)
        agree = f"{agreeing / answers:.1%}" if answers else "-"
        rows.append((f"{low:.2f}", f"{answers / found.answers:.1%}", agree))
    promises = [f"  {_promise(promise)}" for promise in found.promises]
    return ["  automated from this confidence on:", *_indented(table(head, rows)), *promises]


def _promise(promise: Mapping[str, Any]) -> str:
    if promise["min_confidence"] is None:
        return f"{promise['target']:.0%} right: cannot be promised, {promise['reason']}"
    kept = f"min_confidence {promise['min_confidence']:.2f} keeps it, {promise['automated']:.1%}"
    return f"{promise['target']:.0%} right: {kept} automated (95% sure)"


def _confusion(found: Agreement) -> list[str]:
    labels = sorted({label for pair in found.confusion for label in pair})
    if len(labels) > MATRIX:
        return _confused_pairs(found)
    head = ["label \\ answer", *map(_cut, labels)]
    rows = []
    for label in labels:
        counts = (f"{found.confusion[label, said]:,}" for said in labels)
        rows.append([_cut(label), *counts])
    return ["  confusion:", *_indented(table(head, rows))]


def _confused_pairs(found: Agreement) -> list[str]:
    wrong = [(pair, n) for pair, n in found.confusion.most_common() if pair[0] != pair[1]]
    if not wrong:
        return []
    rows = [(_cut(label), _cut(said), f"{n:,}") for (label, said), n in wrong[:PAIRS]]
    lines = table(("label", "answer", "times"), rows, text={0, 1})
    return ["  most frequent confusions:", *_indented(lines)]


def _disagreements(found: Agreement, excerpts: Mapping[int, str]) -> Iterator[str]:
    if found.examples:
        yield "  surest disagreements:"
    for line, confidence, label, said in found.examples:
        words = f"label {_cut(label)}, answer {_cut(said)} at {confidence:.2f}"
        yield f"    line {line:,}: {words}" + (f": {excerpts[line]}" if line in excerpts else "")


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _cut(text: str) -> str:
    line = "".join(character if character.isprintable() else " " for character in text)
    return line if len(line) <= _CELL else f"{line[: _CELL - 1]}…"
