"""JSON schemas of fields that the answers of several types share."""

from __future__ import annotations

from svc.shapes import FLAG, NUMBER, PROBABILITY, TEXT, array, described, mapping

CONFIDENCE = described(PROBABILITY, "The probability of the answer.")
OF_OPTIONS = mapping(PROBABILITY)
ABSTAIN = {
    "abstain": described(FLAG, "Whether `confidence` is below the question's `min_confidence`.")
}
# For types whose answers have no other confidence.
# Exactly 1, but generators of clients write broken code for an optional constant.
RULED = {
    "confidence": described({**NUMBER, "minimum": 1, "maximum": 1}, "Only where a rule answered.")
}
COVERAGE = {
    "coverage": described(PROBABILITY, "As asked for."),
    "guaranteed": described(FLAG, "Whether there are labels enough for `set`."),
}
SET = {
    **COVERAGE,
    "guaranteed_options": described(
        array(TEXT),
        "With `coverage_per: option`: those that have labels enough of their own for the promise. "
        "`guaranteed` is true where all have.",
    ),
    "set": described(
        array(TEXT, 1),
        "Holds the true answer with probability `coverage`, if labels are drawn like decisions.",
    ),
}
