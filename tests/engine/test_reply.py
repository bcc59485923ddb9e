"""From a whole reply to one reading for each question."""

from __future__ import annotations

import contextlib
import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.engine.label_reading import read_lines
from svc.engine.reply import JSON_CHARS, JSON_STARTS, assembled, decided, read_json, wanted_labels
from svc.providers.replies import Token
from svc.questions import LabelLine, Question, Reading, Unreadable
from svc.questions.kit import verbal
from tests.engine.models import CHOICE, INTEGER, MULTI, NOUL, NUMBER, SCORE, TEXT
from tests.engine.tokens import token
from tests.questions.contract import load

MANY = load({**CHOICE, "options": {f"o{i}": "" for i in range(40)}})
LABELLED = [load(body) for body in (CHOICE, SCORE, NOUL, MULTI)]
EXTRACTED = [load({**TEXT, "nullable": True}), load({**NUMBER, "min": 0}), load(INTEGER)]
CHOICE_Q, NOUL_Q, MULTI_Q = load(CHOICE), load(NOUL), load(MULTI)

# More members than are looked at without regard to case and blanks.
OTHERS = ", ".join(f'"o{number}": 0' for number in range(100))

YES = token("yes", ("yes", 0.9), ("no", 0.1))
LINE = token("\n")


def lines_of(
    tokens: list[Token], questions: list[Question], backwards: bool = False
) -> list[Reading]:
    """The readings of a reply with one label a line."""
    found = read_lines(tokens, wanted_labels(questions, backwards))
    return assembled(found, questions, backwards)


def test_each_line_answers_one_label_in_the_order_of_the_questions() -> None:
    tokens = [
        token("B", ("B", 0.7), ("A", 0.2), ("C", 0.1)),
        LINE,
        token("no", ("no", 0.8), ("yes", 0.2)),
        LINE,
        YES,
        LINE,
        token("no", ("no", 0.6), ("yes", 0.4)),
    ]
    choice, urgent, topics = lines_of(tokens, [CHOICE_Q, NOUL_Q, MULTI_Q])
    assert choice.probabilities == pytest.approx((0.2, 0.7, 0.1))
    assert urgent.probabilities == pytest.approx((0.2,))
    assert topics.probabilities == pytest.approx((0.9, 0.4))


def test_reversed_lines_read_back() -> None:
    tokens = [token("A", ("A", 0.7), ("B", 0.2), ("C", 0.1)), LINE, YES]
    choice, urgent = lines_of(tokens, [CHOICE_Q, NOUL_Q], backwards=True)
    assert choice.probabilities == pytest.approx((0.1, 0.2, 0.7))
    assert urgent.probabilities == pytest.approx((0.9,))


def test_the_mass_on_valid_labels_is_kept() -> None:
    tokens = [token("yes", ("yes", 0.5), ("no", 0.1), ("?", 0.4))]
    assert lines_of(tokens, [NOUL_Q])[0].mass == pytest.approx(0.6)


def test_a_label_missing_from_all_alternatives_is_no_more_probable_than_any_of_them() -> None:
    tokens = [token("A", ("A", 0.6), ("B", 0.1), ("x", 0.05))]
    (reading,) = lines_of(tokens, [CHOICE_Q])
    assert reading.probabilities == pytest.approx((0.8, 2 / 15, 1 / 15))


def test_a_single_alternative_still_gives_a_distribution() -> None:
    (reading,) = lines_of([token("A", ("A", 0.8))], [CHOICE_Q])
    assert reading.probabilities == pytest.approx((0.8, 0.1, 0.1))


def test_a_line_on_whose_labels_no_probability_fell_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        lines_of([token("yes", ("yes", 0.0), ("no", 0.0), ("x", 0.0))], [NOUL_Q])


def test_many_objects_that_may_be_the_only_answer_cost_little(frozen_heap: None) -> None:
    most = load({**CHOICE, "options": {f"o{i}": "" for i in range(255)}})
    one = {"probabilities": {"probabilities": {"o1": 0.5}}}
    text = " ".join(json.dumps([one] * 50) for _ in range(50))
    before = time.thread_time()
    with contextlib.suppress(Unreadable):
        read_json(text, [most], False)
    assert time.thread_time() - before < 0.1


class Looked:
    """Counts the names that are looked up, and how often a question's labels are made ready."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names = self.made = 0
        position, make = verbal._Written.position, verbal._Written.__init__

        def counted(written: verbal._Written, name: str) -> int | None:
            self.names += 1
            return position(written, name)

        def counted_make(written: verbal._Written, *args: Any) -> None:
            self.made += 1
            make(written, *args)

        monkeypatch.setattr(verbal._Written, "position", counted)
        monkeypatch.setattr(verbal._Written, "__init__", counted_make)


def unknown(kind: str, count: int) -> Any:
    """An object or a list with so many names that are none of an option."""
    names = [f"c{number}" for number in range(count)]
    return {
        "object": dict.fromkeys(names, 0),
        "object within one": {"answer": dict.fromkeys(names, 0)},
        "names": names,
        "objects": [dict.fromkeys(names[:20], 0)] * (count // 20),
        "truth values": [True] * count,
    }[kind]


KINDS = ["object", "object within one", "names", "objects", "truth values"]


@pytest.mark.parametrize("kind", KINDS)
def test_few_names_are_looked_up_in_objects_that_are_no_answer(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    most = load({**CHOICE, "options": {f"{kind} {number}": "" for number in range(255)}})
    looked = Looked(monkeypatch)
    written = [{"label": "C", "probability": 0.9}, *[unknown(kind, 900)] * 24]
    with pytest.raises(Unreadable):
        read_json("\n".join(map(json.dumps, written)), [most], False)
    assert 900 <= looked.names <= 4_000
    assert looked.made == 1


def test_long_names_in_what_is_no_answer_are_looked_up_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = load({**CHOICE, "options": {f"long {number}": "" for number in range(255)}})
    looked = Looked(monkeypatch)
    written = [{f"{number} {'x' * 1_000}": 0.1} for number in range(150)]
    with pytest.raises(Unreadable):
        read_json(json.dumps(written), [most], False)
    # A list is looked at as a whole before each of its objects is.
    assert looked.names <= 150


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_before_objects_that_are_none_is_read(kind: str) -> None:
    most = load({**CHOICE, "options": {f"o{number}": "" for number in range(255)}})
    written = [[{"label": "C", "probability": 0.9}], unknown(kind, 400), unknown(kind, 400)]
    (reading,) = read_json("\n".join(map(json.dumps, written)), [most], False)
    assert reading.probabilities[2] == pytest.approx(0.9)


def test_the_names_in_an_answer_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    most = load({**CHOICE, "options": {f"once {number}": "" for number in range(255)}})
    looked = Looked(monkeypatch)
    members = {"q1": {"C": 0.9, **unknown("object", 400)}, "q2": {"A": 0.8}}
    read_json(json.dumps(members), [most, most], False)
    assert looked.names == 402


def test_of_few_options_few_names_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Looked(monkeypatch)
    members = {
        "q1": {**unknown("object", 80), "yes": 0.9},
        "q2": {"yes": 0.8, **unknown("object", 1_000)},
    }
    first, second = read_json(json.dumps(members), [NOUL_Q, NOUL_Q], False)
    found = [first.probabilities[0], second.probabilities[0]]
    assert found == pytest.approx([0.9, 0.8])
    assert looked.names < 200


def test_what_a_server_decided_is_read_in_the_original_order() -> None:
    lines = [LabelLine({0: 0.7, 1: 0.2, 2: 0.1}), LabelLine({0: 0.6, 1: 0.4})]
    choice, urgent = decided(lines, [CHOICE_Q, NOUL_Q])
    assert choice.probabilities == pytest.approx((0.7, 0.2, 0.1))
    assert choice.mass is None
    assert urgent.probabilities == pytest.approx((0.6,))


def test_a_decision_without_any_probability_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        decided([LabelLine({})], [CHOICE_Q])
    with pytest.raises(Unreadable):
        decided([LabelLine({0: 0.0, 1: 0.0})], [NOUL_Q])


# --- JSON ---


@pytest.mark.parametrize(
    "text",
    [
        '{"q1": {"yes": 0.7, "no": 0.3}}',
        '```json\n{"q1": {"yes": 0.7, "no": 0.3}}\n```',
        'Well {as you see}: {"note": 1} {"q1": {"YES": 0.7, " no ": 0.3}} I hope.',
        '{"reasoning": "because {x}", "q1": {"yes": 70, "no": 30}}',
        '{"q1": {"yes": 0.7}}',
        '{"q1": {"yes": "70%", "no": "30 %"}}',
        '{"q1": {"yes": "0.7", "no": "0.3"}}',
        '{"q1": 0.7}',
        '{"q1": 70}',
        '{"q1": "70%"}',
        '{"Q1 ": {"yes": 0.7, "no": 0.3}}',
        '[{"q1": {"yes": 0.7, "no": 0.3}}]',
        '{"answers": {"q1": {"yes": 0.7, "no": 0.3}}}',
        '{"yes": 0.7, "no": 0.3}',
        '{{"q1": {"yes": 0.7, "no": 0.3}}',
        '<think>{"q1": {"yes": 0.1, "no": 0.9}}</think>{"q1": {"yes": 0.7, "no": 0.3}}',
        'So {"q1": {"yes": 0.1, "no": 0.9}}</think>{"q1": {"yes": 0.7, "no": 0.3}}',
        '{"answer": {"q1": {"yes": 0.7, "no": 0.3}}}',
        '[{"note": 1}, {"q1": {"yes": 0.7, "no": 0.3}}]',
        '[{"answer": {"q1": {"yes": 0.7, "no": 0.3}}}]',
        '{"q1": {"yes": 0.7, "no": 0.3}, "reasoning": "it says </think> so"}',
        '```\n{"q1": {"yes": 0.7, "no": 0.3}, "reasoning": "</think>"}\n```',
        '{"q1": {"yes": 0.1, "no": 0.9}} no: {"q1": {"yes": 0.7, "no": 0.3}}',
        'It said {"q1": {"yes": 0, "no": 1}}.\n{"q1": {"yes": 0.7, "no": 0.3}} {"note": 1} {}',
        '{"yes": 0, "no": 1} {"q1": {"yes": 0.7, "no": 0.3}} {"yes": 0.1, "no": 0.9}',
        '{"yes": 0, "no": 1} {"yes": 0.7, "no": 0.3} {"maybe": 1}',
        '{"q1": {"yes": 0.7, "no": 0.3}, ' + OTHERS + "}",
        "- [2026-11-28 12:00] [INFO] worker[0] job {id=0} done\n" * 100
        + '```json\n{"q1": {"yes": 0.7, "no": 0.3}}\n```',
        # What is quoted first, with much that begins like JSON behind it, is not the answer.
        '{"q1": {"yes": 0.1, "no": 0.9}} ' + "[1] " * 300 + '{"q1": {"yes": 0.7, "no": 0.3}}',
        "{ " * 1_000 + '{"q1": {"yes": 0.7, "no": 0.3}}',
        # What is quoted behind the answer counts as little.
        '{"q1": {"yes": 0.7, "no": 0.3}}\n' + "sshd[1001]: failed, as in [1, 2.5]\n" * 150,
        '{"yes": 0.7, "no": 0.3}\n' + "sshd[1001]: failed, as in [1, 2.5]\n" * 150,
        '{"q1": {"yes": 0.7, "no": 0.3}}\n' + '{"id": 1, "rows": ["x"]}\n' * 300,
        # What is quoted in part is read again for each list that it opens.
        "[" * 20 + "1, " * 1_000 + 'and so on: {"q1": {"yes": 0.7, "no": 0.3}}',
        "[[[" + "1, " * 5_000 + 'and so on: {"q1": {"yes": 0.7, "no": 0.3}}' + "x" * 20_000,
        "[" + "0, " * 40_000 + '{"q1": {"yes": 0.7, "no": 0.3}}',
    ],
    ids=lambda text: text[:80],
)
def test_a_json_reply_is_found_in_its_surroundings(text: str) -> None:
    (reading,) = read_json(text, [NOUL_Q], False)
    assert reading.probabilities == pytest.approx((0.7,))
    assert reading.mass is None


def test_case_and_blanks_of_names_do_not_matter_beside_a_few_other_members() -> None:
    """With two questions an answer alone, without names, is none."""
    answers = {" Q1": {"yes": 0.7, "no": 0.3}, "Q2": {"yes": 0.6, "no": 0.4}}
    few, many = ({f"o{number}": 0 for number in range(count)} for count in (86, 100))
    for members in (answers, answers | few):
        readings = read_json(json.dumps(members), [NOUL_Q, NOUL_Q], False)
        assert [reading.probabilities[0] for reading in readings] == pytest.approx([0.7, 0.6])
    with pytest.raises(Unreadable):
        read_json(json.dumps(answers | many), [NOUL_Q, NOUL_Q], False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        "{",
        "{" * 5_000,
        '{"a":' * 5_000,
        "[]",
        "null",
        '{"answer": {"maybe": 1}}',
        '{"q1": {"yes": ' + "9" * 5_000 + "}}",
        '{"q1": null}',
        '{"q2": null}',
        '{"q1": {"yes": 0.0, "no": 0.0}}',
        '<think>{"q1": {"yes": 0.7, "no": 0.3}}',
        "[1 " * JSON_STARTS + '{"q1": {"yes": 0.7, "no": 0.3}}',
        '{"q1": {"yes": 0.1, "no": 0.9}} ' + "[1] " * JSON_STARTS,
        '{"echo": {"deep": {"q1": {"yes": 0.7, "no": 0.3}}}}',
        '{"note": 1, "input": {"q1": {"yes": 0.7, "no": 0.3}}}',
        '{"note": [{"q1": {"yes": 0.7, "no": 0.3}}]}',
        '[[{"q1": {"yes": 0.7, "no": 0.3}}]]',
        '{"A": 7, "B": 2}',
        '{"q1": 8}',
        " " * JSON_CHARS + '{"q1": {"yes": 0.7, "no": 0.3}}',
        '{"Q1": {"yes": 0.7, "no": 0.3}, ' + OTHERS + "}",
        "[" + "0, " * 50_000 + '{"q1": {"yes": 0.7, "no": 0.3}}',
    ],
    ids=lambda text: text[:80],
)
def test_a_reply_without_the_answers_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_json(text, [NOUL_Q], False)


def test_an_answer_that_is_quoted_inside_the_answer_does_not_count() -> None:
    quoted = json.dumps({"q1": {"yes": 0.0, "no": 1.0}})
    reply = {"reasoning": quoted, "q1": {"yes": 0.7, "no": 0.3}}
    for members in (reply, dict(reversed(reply.items()))):
        (reading,) = read_json(json.dumps(members), [NOUL_Q], False)
        assert reading.probabilities == pytest.approx((0.7,))


@pytest.mark.parametrize(
    "member",
    [{"A": 7, "B": 2}, {"A": "85%", "B": 10}, {"A": 8}, {"A": 0.1}, [{"label": "A", "p": 5}]],
    ids=str,
)
def test_numbers_that_may_mean_several_things_are_refused(member: Any) -> None:
    for text in (json.dumps(member), json.dumps({"q1": member})):
        with pytest.raises(Unreadable):
            read_json(text, [CHOICE_Q], False)


def test_a_bare_number_is_a_share_or_a_large_percentage() -> None:
    for number, yes in ((0.08, 0.08), (1, 1.0), (80, 0.8), ("8%", 0.08)):
        (reading,) = read_json(json.dumps({"q1": number}), [NOUL_Q], False)
        assert reading.probabilities == pytest.approx((yes,))
    for number in (8, 20, 1.5, -101, 101):
        with contextlib.suppress(Unreadable):
            (reading,) = read_json(json.dumps({"q1": number}), [NOUL_Q], False)
            assert number < 0 and reading.probabilities == (0.0,)


LONGEST_S = 15.0  # of the processor: a few times what the worst reply takes


@pytest.mark.parametrize(
    "text",
    [
        "[" * 49 + "[]," * 80_000,
        "[" * 49 + '{"zz":1},' * 28_000,
        "{" * 49 + "[]," * 80_000,
        "[" + "{}," * 80_000 + "{}]",
        "[" + '{"a":{}},' * 28_000 + "{}]",
        "[]" * 120_000,
        '{"q1":' * 40_000,
        '"[' * 120_000,
        "</think>" * 30_000,
        "{" * 250_000,
        '{"q1": "' + "\\" * 250_000,
        "[" + "1," * 120_000 + "1]",
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("questions", [[MANY], [CHOICE_Q, NOUL_Q]], ids=["one", "two"])
def test_a_hostile_reply_is_refused_at_once(text: str, questions: list[Question]) -> None:
    began = time.process_time()
    with pytest.raises(Unreadable):
        read_json(text, questions, False)
    assert time.process_time() - began < LONGEST_S


def test_a_short_reply_is_not_read_many_times_over(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, decode = [], json.JSONDecoder.raw_decode

    def counted(self: json.JSONDecoder, text: str, start: int) -> Any:
        reads.append(start)
        return decode(self, text, start)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counted)
    with pytest.raises(Unreadable, match="begins like JSON"):
        read_json("[" * 20 + "1e-400, " * 2_000 + "x", [NOUL_Q], False, has_time=False)
    assert len(reads) < 5
    reads.clear()
    with pytest.raises(Unreadable, match="begins like JSON"):
        read_json("[" * 20 + "1e-400, " * 2_000 + "x", [NOUL_Q], False)
    assert 5 < len(reads) < 12


def test_a_text_without_an_end_is_read_once_or_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, decode = [], json.JSONDecoder.raw_decode

    def counted(decoder: json.JSONDecoder, text: str, start: int = 0) -> Any:
        reads.append(start)
        return decode(decoder, text, start)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counted)
    with pytest.raises(Unreadable):
        read_json("[" * JSON_STARTS + '"' + "\\n" * (JSON_CHARS // 2 - 50), [NOUL_Q], False)
    assert len(reads) <= 2


@pytest.mark.parametrize("named", ["unknown", "(" * 40, "some one: y", "A" * 40, " " * 40])
def test_thousands_of_unknown_labels_for_many_options_are_refused_at_once(named: str) -> None:
    most = load({**CHOICE, "options": {f"intent_{number}": "" for number in range(255)}})
    names = [f"{named}{number}" for number in range(6_000)]
    members: list[Any] = [
        names,
        dict.fromkeys(names, 0.1),
        [{"label": name, "probability": 0.1} for name in names],
        [[name, 0.1] for name in names],
        [dict.fromkeys(names[:900], 0.1)] * 5,
    ]
    began = time.process_time()
    for member in members:
        for reply in ({"q1": member}, member):
            with pytest.raises(Unreadable):
                read_json(json.dumps(reply), [most], False)
    assert time.process_time() - began < LONGEST_S


def test_a_reply_without_names_is_read_for_one_question_only() -> None:
    assert read_json('{"A": 0.7, "B": 0.3}', [CHOICE_Q], False)
    with pytest.raises(Unreadable):
        read_json('{"A": 0.7, "B": 0.3}', [CHOICE_Q, NOUL_Q], False)


def test_the_options_of_a_reversed_prompt_read_back() -> None:
    (by_letter,) = read_json('{"q1": {"A": 0.7, "B": 0.2, "C": 0.1}}', [CHOICE_Q], True)
    (by_name,) = read_json('{"q1": {"billing": 0.7, "access": 0.3}}', [CHOICE_Q], True)
    assert by_letter.probabilities == pytest.approx((0.1, 0.2, 0.7))
    assert by_name.probabilities == pytest.approx((0.7, 0.3, 0.0))


def test_one_unusable_label_question_spoils_a_reply_but_an_extraction_never_does() -> None:
    questions = [NOUL_Q, EXTRACTED[2]]
    good = {"yes": 0.7, "no": 0.3}
    first, second = read_json(json.dumps({"q1": good}), questions, False)
    assert first.probabilities == pytest.approx((0.7,))
    assert second == Reading((0.0,), answered=False)
    with pytest.raises(Unreadable):
        read_json(json.dumps({"q2": {"value": 3, "confidence": 1}}), questions, False)


# --- the scale of a reply ---


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([{"yes": 70, "no": 30}], [0.7]),
        ([{"yes": 69, "no": 29}], [69 / 98]),
        ([{"yes": 100, "no": 0}], [1.0]),
        ([{"yes": 85}], [0.85]),
        ([{"yes": 0.5, "no": 0.5}], [0.5]),
        ([{"yes": 1, "no": 0}], [1.0]),
        ([{"yes": 0.9, "no": 0.3}], [0.75]),
        ([{"yes": 0.5, "no": 99.5}], [0.005]),
        ([{"yes": 70, "no": 30}, {"yes": 20, "no": 80}], [0.7, 0.2]),
        ([{"yes": 1, "no": 99}, {"yes": 20, "no": 80}], [0.01, 0.2]),
    ],
)
def test_probabilities_are_read_on_the_scale_of_the_whole_reply(
    members: list[Any], expected: list[float]
) -> None:
    reply = json.dumps({f"q{n}": member for n, member in enumerate(members, 1)})
    found = read_json(reply, [NOUL_Q] * len(members), False)
    assert [one.probabilities[0] for one in found] == pytest.approx(expected)


@pytest.mark.parametrize(
    "members",
    [
        [{"yes": 7, "no": 3}],
        [{"yes": 1, "no": 5}],
        [{"yes": 150, "no": 0}],
        [{"yes": 700, "no": 300}],
        [{"yes": 70, "no": 70}],
        [{"yes": 50, "no": 0.5}],
        [{"yes": 0.7, "no": 0.3}, {"yes": 70, "no": 30}],
        [{"yes": 1, "no": 0}, {"yes": 70, "no": 30}],
        [{"yes": 70, "no": 30}, 0.7],
    ],
)
def test_probabilities_on_no_known_scale_are_refused(members: list[Any]) -> None:
    reply = json.dumps({f"q{n}": member for n, member in enumerate(members, 1)})
    with pytest.raises(Unreadable):
        read_json(reply, [NOUL_Q] * len(members), False)


def test_a_confidence_tells_of_the_scale_too() -> None:
    questions = [NOUL_Q, EXTRACTED[2]]
    reply = {"q1": {"yes": 70, "no": 30}, "q2": {"value": 3, "confidence": 85}}
    urgent, count = read_json(json.dumps(reply), questions, False)
    assert urgent.probabilities == pytest.approx((0.7,))
    assert (count.value, count.probabilities) == (3, pytest.approx((0.85,)))
    mixed = {**reply, "q2": {"value": 3, "confidence": 0.85}}
    with pytest.raises(Unreadable, match="scale"):
        read_json(json.dumps(mixed), questions, False)


def test_a_confidence_of_nothing_is_on_every_scale() -> None:
    for yes, no in ((70, 30), (0.7, 0.3)):
        reply = {"q1": {"yes": yes, "no": no}, "q2": {"value": 3, "confidence": 0}}
        urgent, count = read_json(json.dumps(reply), [NOUL_Q, EXTRACTED[2]], False)
        assert urgent.probabilities == pytest.approx((0.7,))
        assert count.probabilities == (0.0,)


def test_independent_percentages_need_not_sum_to_anything() -> None:
    (topics,) = read_json('{"q1": {"A": 90, "B": 80}}', [MULTI_Q], False)
    assert topics.probabilities == pytest.approx((0.9, 0.8))
    with pytest.raises(Unreadable):
        read_json('{"q1": {"A": 90, "B": 0.5}}', [MULTI_Q], False)


# --- whatever a model replies ---

LABELS = st.sampled_from(
    ["A", "B", "C", " a", "yes", "no", "YES\n", "\n", "", "x", "<|end|>", "A\nB"]
)
LOGPROBS = st.floats(max_value=0.5) | st.just(math.nan) | st.just(-9999.0)
TOKENS = st.builds(
    Token, LABELS, LOGPROBS, st.lists(st.tuples(LABELS, LOGPROBS), max_size=5).map(tuple)
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**320), 10**320)
    | st.floats()
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["A", "b", "C", "yes", "No", "value", "confidence", "label", "probability"]
            )
            | st.text(max_size=2),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


def assert_sound(question: Question, reading: Reading) -> None:
    """The answer is JSON with probabilities in range; a distribution sums to 1."""
    answer = question.answer(reading)
    json.dumps(answer, allow_nan=False).encode()
    shown = answer.get("probabilities", [])
    shown = list(shown.values()) if isinstance(shown, dict) else shown
    single = [answer[name] for name in ("noul", "confidence") if name in answer]
    assert all(0.0 <= p <= 1.0 for p in [*shown, *single, *reading.probabilities])
    if question.type in ("choice", "score"):
        assert math.fsum(shown) == pytest.approx(1.0, abs=1e-9)
        assert answer["confidence"] == max(shown)
    if question.type == "choice":
        assert answer["probabilities"][answer["choice"]] == max(shown)


@settings(max_examples=150, deadline=None)
@given(st.lists(TOKENS, max_size=8), st.booleans(), st.sampled_from(LABELLED))
def test_no_line_reply_raises_anything_but_unreadable(
    tokens: list[Token], backwards: bool, question: Question
) -> None:
    try:
        (reading,) = lines_of(tokens, [question], backwards)
    except Unreadable:
        return
    assert_sound(question, reading)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(JSON, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([*LABELLED, *EXTRACTED, MANY]),
)
def test_no_json_member_raises_anything_but_unreadable(
    members: list[Any], backwards: bool, question: Question
) -> None:
    readings = []
    for member in members:
        try:
            readings += read_json(json.dumps({"q1": member}), [question], backwards)
        except Unreadable:
            continue
        assert_sound(question, readings[-1])
    if readings:
        assert_sound(question, question.merge(readings))
        assert_sound(question, question.blend(readings)[0])


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='{}[]":,q1yesno0.5 \n\\ud8', max_size=60))
def test_no_text_raises_anything_but_unreadable(text: str) -> None:
    try:
        (reading,) = read_json(text, [NOUL_Q], False)
    except Unreadable:
        return
    assert_sound(NOUL_Q, reading)
