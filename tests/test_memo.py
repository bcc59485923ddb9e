from __future__ import annotations

import threading

from svc.memo import CHAR_BYTES, ELEMENT_BYTES, Memo

MOST = 8 * 20 * CHAR_BYTES


def test_the_same_text_gives_the_same_object() -> None:
    memo = Memo(lambda text: [text], MOST)
    assert memo("a") is memo("a")
    assert memo("a") == ["a"] and memo("b") == ["b"]


def test_the_texts_that_came_last_are_kept_as_many_as_there_is_room_for() -> None:
    made: list[str] = []
    memo = Memo(lambda text: made.append(text), MOST)
    for number in range(8):
        memo(f"{number:020}")
    memo(f"{0:020}")
    memo(f"{8:020}")
    memo(f"{0:020}")
    assert made == [f"{number:020}" for number in range(9)]
    memo(f"{1:020}")
    assert made[-1] == f"{1:020}"


def test_a_text_that_fills_much_is_made_anew() -> None:
    memo = Memo(lambda text: [text], MOST)
    long, crowded = "x" * 42, "," * (MOST // 4 // ELEMENT_BYTES + 1)
    assert memo(long) is not memo(long)
    assert memo(crowded) is not memo(crowded)


def test_what_fails_is_tried_again() -> None:
    failures = [ValueError("no"), None]

    def make(text: str) -> str:
        failure = failures.pop(0)
        if failure:
            raise failure
        return text

    memo = Memo(make, MOST)
    try:
        memo("a")
    except ValueError:
        assert memo("a") == "a"


def test_threads_that_ask_at_once_get_one_object() -> None:
    both = threading.Barrier(2)

    def make(text: str) -> list[str]:
        both.wait(10)
        return [text]

    memo = Memo(make, MOST)
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(memo("a"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]
