from __future__ import annotations

import pytest

from svc.stats.drift import WeekTally, latest_significance, report


def week(name: str, confidence: float = 0.8, **counts: int) -> WeekTally:
    return WeekTally(name, counts, confidence * sum(counts.values()))


def test_the_latest_week_is_compared_with_the_mean_of_the_earlier_ones() -> None:
    rows = report(
        [week("W1", 0.9, a=1, b=1), week("W2", 0.7, a=30), week("W3", 0.85, b=4)], mixed=True
    )
    assert rows[0] == {
        "week": "W1",
        "decisions": 2,
        "mix": {"a": 0.5, "b": 0.5},
        "confidence": pytest.approx(0.9),
    }
    latest = rows[2]
    # The earlier weeks count alike, however many decisions they had: a 0.75, b 0.25.
    assert latest["mix_change"] == pytest.approx(0.75)
    assert latest["confidence_change"] == pytest.approx(0.05)
    assert latest["drift"] is True


@pytest.mark.parametrize(
    ("moved", "drift"), [(20, False), (21, True)], ids=["a fifth", "more than a fifth"]
)
def test_a_mix_drifts_when_more_than_a_fifth_of_it_moves(moved: int, drift: bool) -> None:
    rows = report([week("W1", a=70, b=30), week("W2", a=70 - moved, b=30 + moved)], mixed=True)
    assert rows[1]["drift"] is drift


@pytest.mark.parametrize(("confidence", "drift"), [(0.9, False), (0.91, True), (0.69, True)])
def test_confidence_drifts_when_it_moves_by_more_than_a_tenth(
    confidence: float, drift: bool
) -> None:
    rows = report([week("W1", 0.8, a=10), week("W2", confidence, a=10)], mixed=True)
    assert rows[1]["drift"] is drift


def test_answers_that_come_and_go_count() -> None:
    rows = report([week("W1", a=4), week("W2", b=4)], mixed=True)
    assert rows[1]["mix_change"] == 1.0


def test_extracted_values_drift_by_confidence_alone() -> None:
    rows = report([WeekTally("W1", {"": 4}, 3.6), WeekTally("W2", {"": 2}, 1.0)], mixed=False)
    assert rows[1] == {
        "week": "W2",
        "decisions": 2,
        "mix": None,
        "confidence": 0.5,
        "confidence_change": pytest.approx(-0.4),
        "drift": True,
    }


def test_a_first_week_has_nothing_to_be_compared_with() -> None:
    (only,) = report([week("W1", a=4)], mixed=True)
    assert (only["mix_change"], only["confidence_change"], only["drift"]) == (None, None, False)
    assert report([], mixed=True) == []


def test_answers_without_a_name_are_compared_by_groups() -> None:
    """Two of them may change places where neither has a name."""
    weeks = [
        WeekTally("W1", {"(others)": 100}, 90.0, None, {"1": 100}, unnamed=True),
        WeekTally("W2", {"(others)": 100}, 90.0, None, {"2": 100}, unnamed=True),
    ]
    assert report(weeks, mixed=True)[-1]["mix_change"] == 1.0
    assert report(weeks, mixed=True)[-1]["mix"] == {"(others)": 1.0}
    test = latest_significance(weeks, mixed=True, finished=True)
    assert test["mix"]["alarm"]
