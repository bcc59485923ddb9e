"""Values of several owners in a bounded number of places."""

from __future__ import annotations

from svc.recent import Recent


def test_of_one_owner_the_value_used_longest_ago_is_given_up_first() -> None:
    recent: Recent[str, str, int] = Recent(2)
    recent.put("a", "one", 1), recent.put("a", "two", 2)
    assert recent.get("a", "one") == 1
    recent.put("a", "three", 3)
    assert [recent.get("a", key) for key in ("one", "two", "three")] == [1, None, 3]


def test_a_value_in_the_place_of_another_takes_no_further_one() -> None:
    recent: Recent[str, str, int] = Recent(2)
    for value in (1, 2, 3):
        recent.put("a", "one", value)
    recent.put("b", "one", 4)
    assert (recent.get("a", "one"), recent.get("b", "one")) == (3, 4)


def test_the_many_of_one_owner_leave_those_of_others_alone() -> None:
    recent: Recent[str, int, int] = Recent(10)
    for key in range(3):
        recent.put("few", key, key)
    for key in range(100):
        recent.put("many", key, key)
    recent.put("new", 0, 7)
    assert [recent.get("few", key) for key in range(3)] == [0, 1, 2]
    assert recent.get("new", 0) == 7
    assert sum(recent.get("many", key) is not None for key in range(100)) == 6


def test_of_owners_with_as_many_the_one_used_longest_ago_gives_up_one() -> None:
    recent: Recent[str, str, int] = Recent(2)
    recent.put("a", "x", 1), recent.put("b", "x", 2)
    assert recent.get("a", "x") == 1
    recent.put("c", "x", 3)
    assert [recent.get(owner, "x") for owner in "abc"] == [1, None, 3]
