from __future__ import annotations

import threading

from svc.remembering import CHAR_BYTES, ELEMENT_BYTES, Remembered

MOST = 8 * 20 * CHAR_BYTES


def test_the_same_text_gives_the_same_object() -> None:
    remembered = Remembered(lambda text: [text], MOST)
    assert remembered("a") is remembered("a")
    assert remembered("a") == ["a"] and remembered("b") == ["b"]


def test_the_texts_that_came_last_are_kept_as_many_as_there_is_room_for() -> None:
    made: list[str] = []
    remembered = Remembered(lambda text: made.append(text), MOST)
    for number in range(8):
        remembered(f"{number:020}")
    remembered(f"{0:020}")
    remembered(f"{8:020}")
    remembered(f"{0:020}")
    assert made == [f"{number:020}" for number in range(9)]
    remembered(f"{1:020}")
    assert made[-1] == f"{1:020}"


def test_a_text_that_fills_much_is_made_anew() -> None:
    remembered = Remembered(lambda text: [text], MOST)
    long, crowded = "x" * 21, "," * (MOST // 8 // ELEMENT_BYTES + 1)
    assert remembered(long) is not remembered(long)
    assert remembered(crowded) is not remembered(crowded)


def test_what_fails_is_tried_again() -> None:
    failures = [ValueError("no"), None]

    def make(text: str) -> str:
        failure = failures.pop(0)
        if failure:
            raise failure
        return text

    remembered = Remembered(make, MOST)
    try:
        remembered("a")
    except ValueError:
        assert remembered("a") == "a"


def test_threads_that_ask_at_once_get_one_object() -> None:
    both = threading.Barrier(2)

    def make(text: str) -> list[str]:
        both.wait(10)
        return [text]

    remembered = Remembered(make, MOST)
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(remembered("a"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]
