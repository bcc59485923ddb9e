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


def test_of_owners_without_half_of_all_what_was_used_longest_ago_is_given_up() -> None:
    recent: Recent[str, str, int] = Recent(4)
    for owner in "abcd":
        recent.put(owner, "x", 1)
    assert recent.get("a", "x") == 1
    recent.put("e", "x", 1), recent.put("e", "y", 1)
    assert [recent.get(owner, "x") for owner in "abcde"] == [1, None, None, 1, 1]


def test_owners_that_come_no_more_leave_room_for_others() -> None:
    recent: Recent[int, str, int] = Recent(100)
    for owner in range(100):
        recent.put(owner, "x", 1)
    for _ in range(3):
        for key in "pq":
            recent.put(1_000, key, 1)
        assert recent.get(1_000, "p") == recent.get(1_000, "q") == 1


def test_an_owner_that_fills_all_pays_for_what_others_bring() -> None:
    recent: Recent[str, int, int] = Recent(10)
    for key in range(10):
        recent.put("large", key, key)
    for _ in range(5):
        for owner in "bc":
            for key in range(2):
                if recent.get(owner, key) is None:
                    recent.put(owner, key, 1)
        assert recent.get("large", 9) == 9
    assert all(recent.get(owner, key) == 1 for owner in "bc" for key in range(2))


def test_of_two_owners_with_over_half_in_weight_each_gives_up_its_own() -> None:
    recent: Recent[str, int, int] = Recent(100, int)
    recent.put("small", 0, 10)
    for key in range(6):
        recent.put("one", key, 10)
    recent.put("other", 0, 60)
    recent.put("other", 1, 60)
    assert recent.get("small", 0) == 10


def test_an_account_gives_up_its_own_whoever_owns_them() -> None:
    recent: Recent[str, str, int] = Recent(10)
    recent.put("few", "x", 1, account="one")
    for number in range(100):
        recent.put(f"owner {number}", "x", number, account="other")
    assert recent.get("few", "x") == 1
    assert [recent.get(f"owner {number}", "x") for number in (90, 91, 99)] == [None, 91, 99]


def test_what_takes_the_place_of_another_stays_in_its_account() -> None:
    recent: Recent[str, str, int] = Recent(10)
    recent.put("few", "x", 1, account="one")
    recent.put("few", "x", 2, account="other")
    for number in range(100):
        recent.put(f"owner {number}", "x", number, account="other")
    assert recent.get("few", "x") == 2
