"""One way of asking: what its replies cost to read is waited for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pytest

from svc import limits
from svc.deadline import Deadline, Effort, ModelsAllowance
from svc.engine.ask import SMALL_CHARS
from svc.engine.attempt import CallTarget, Runner
from svc.engine.calls import Call, Outcome
from svc.engine.ladder import Climb
from svc.engine.prompt import PromptInput
from svc.engine.reply import read_json
from svc.errors import ApiError, NoAnswer
from svc.pins import NEWEST, PINS
from svc.providers import JSON_OBJECT, JSON_SCHEMA, ChatCall, Way
from svc.providers.failures import CallTimedOut, FormatRefused, Unread
from svc.providers.replies import Completion, Token
from svc.providers.traits import UNKNOWN, Reason
from svc.questions import Unreadable, count_entries
from svc.records import Decision, Model
from svc.schemas import load_decision, load_questions
from tests.engine.fakes import world
from tests.engine.models import CHOICE, NOUL, TEXT

TARGET = CallTarget(Model("@here/m", "here", "m"), strict=False)
QUESTIONS = tuple(load_questions({"a": NOUL, "b": CHOICE}).values())


@pytest.mark.parametrize(("replies", "debiased"), [(2, True), (1, False)])
def test_replies_that_name_too_much_together_are_not_all_read(replies: int, debiased: bool) -> None:
    options = {f"o{number}": "" for number in range(250)}
    questions = {f"q{number}": {**CHOICE, "options": options} for number in range(20)}
    member = {f"o{number}": 0.004 for number in range(250)}
    text = json.dumps({f"q{number}": member for number in range(1, 21)})
    body = {"state": "s", "questions": questions, "mode": "verbal", "debias": True}
    named = replies * len(questions) * len(member)
    deadline = Deadline(30, effort=Effort(named=ModelsAllowance(named, named)))
    with world(m=lambda _name, _call: Completion(text)) as made:
        decision = made.engine.decide(load_decision(body), deadline)
        assert len(made.client.calls) == 2
    assert decision.response()["debiased"] is debiased


def names(*members: Any) -> str:
    """A reply with these members."""
    return json.dumps({f"q{number}": member for number, member in enumerate(members, 1)})


OPTIONS = {f"o{number}": "" for number in range(250)}
# Eight such questions have more labels than a reply may always name.
MANY = {f"q{number}": {**CHOICE, "options": OPTIONS} for number in range(8)}
HONEST = names(*[{f"o{number}": 0.002 + 0.5 * (number == 7) for number in range(250)}] * 8)
BOOLEANS = names(*[[True] * 1_100] * 40)


def labels_of(decision: Decision) -> set[str]:
    return {answer["choice"] for answer in decision.response()["answers"].values()}


def test_a_model_that_names_much_leaves_the_replies_of_others_to_be_read() -> None:
    body = {"questions": MANY, "mode": "verbal", "debias": False}
    council = {"council": ["@here/liar", "@here/honest"]}
    with world(liar=lambda *_: Completion(BOOLEANS), honest=lambda *_: Completion(HONEST)) as made:
        for number in range(3):
            request = load_decision({**body, "state": f"s {number}", "model": council})
            decision = made.engine.decide(request, Deadline(30))
            assert labels_of(decision) == {"o7"}
        # It is not asked in any other way, which would teach that it cannot be asked in this one.
        assert [name for name, _ in made.client.calls].count("honest") == 3


def test_all_models_together_may_name_only_so_much() -> None:
    named = Effort().named
    each = limits.MODEL_REPLIES_NAMED
    assert [named.take(f"m{number}", each) for number in range(6)] == [True] * 5 + [False]


def test_a_reply_that_names_no_more_than_is_asked_for_is_always_read() -> None:
    options = {f"o{number}": "" for number in range(20)}
    questions = {f"q{number}": {**CHOICE, "options": options} for number in range(64)}
    named = [*options, "none_of_these"]
    reply = Completion(names(*[dict.fromkeys(named, 1 / 21)] * 64))
    deadline = Deadline(30, effort=Effort(named=ModelsAllowance(0, 0)))
    body = {"state": "s", "questions": questions, "mode": "verbal", "debias": False}
    with world(m=lambda *_: reply) as made:
        made.engine.decide(load_decision(body), deadline)
        assert len(made.client.calls) == 1


@pytest.mark.parametrize(
    "member",
    [
        [True] * 1_100,
        [0] * 1_100,
        [[]] * 1_100,
        [{}] * 1_100,
        [["A", 777]] * 1_100,
        dict.fromkeys(map(str, range(1_100)), 0.5),
        dict.fromkeys(map(str, range(1_100))),
        [{"label": "B", "probability": 777}] * 1_100,
        [dict.fromkeys(map(str, range(11)), 777)] * 100,
    ],
    ids=lambda member: str(member)[:20],
)
def test_whatever_stands_in_place_of_labels_counts(member: Any) -> None:
    """Each costs time to look at, also where it names no label; see `MODEL_REPLIES_NAMED`."""
    looked: list[int] = []
    questions = tuple(load_questions(dict.fromkeys("ab", MANY["q1"])).values())
    with suppress(Unreadable):
        read_json(names(member, {"A": 1}), questions, False, looked.append)
    assert looked == [1_101]


@pytest.mark.parametrize("one", [True, 0, None, [], {}, ["A", 777], {"a": None}], ids=str)
def test_no_more_entries_are_looked_at_than_are_counted(one: Any) -> None:
    """Names are looked for among the first of a list alone, in whatever it holds."""
    (question,) = load_questions({"q": MANY["q1"]}).values()
    member = [one] * 2_000
    assert count_entries(member) == 1_100
    assert question.stated([*member, ["B", 1]], False).numbers.get(1) is None
    # So many elements are looked at for 250 options, and one that names none is one of them.
    assert question.stated([*member[:1_084], ["B", 1]], False).numbers.get(1) is None
    assert question.stated([*member[:1_083], ["B", 1]], False).numbers[1] == 1


def test_the_way_to_ask_is_learned_from_replies_that_are_read_beside_those_that_are_not() -> None:
    climb = Climb(UNKNOWN)
    climb.note_failure(Way.SCHEMA, [Unread(), Unread()])
    climb.note_failure(Way.SCHEMA, [Unread(), CallTimedOut()])
    climb.note_failure(Way.OBJECT, [Unread(), FormatRefused("no such format")])
    assert (climb.failed, climb.reason) == ([Way.OBJECT], Reason.REFUSED)


def test_what_was_wrong_with_a_reply_that_is_not_read_is_told() -> None:
    body = {"state": "s", "questions": MANY, "mode": "verbal", "debias": False}
    deadline = Deadline(30, effort=Effort(named=ModelsAllowance(0, 0)))
    with world(m=lambda *_: Completion(HONEST)) as made, pytest.raises(NoAnswer, match="hold more"):
        made.engine.decide(load_decision(body), deadline)
    assert len(made.client.told) == 3
    assert made.client.told[0].startswith("@here/m: a JSON reply was not readable: the replies")


def test_thought_numbers_as_texts_and_quotes_of_extracted_texts_name_nothing() -> None:
    looked: list[int] = []
    questions = tuple(load_questions({"a": CHOICE, "b": TEXT}).values())
    thought = "<think>" + '"billing" or "access"? ' * 100 + "</think>"
    answers = names({"A": "90%", "B": "5%", "C": "5%"}, {"value": '"1","2"', "confidence": 1})
    read_json(thought + answers, questions, False, looked.append)
    assert looked == [3 + 2]


def test_nothing_is_learned_of_a_model_from_replies_that_are_not_read() -> None:
    """Asked for any JSON object it answers shortly, which is no reason to ask it so from now on."""
    few = names(*[{"o7": 1}] * 8)
    short = {"q": {**CHOICE, "options": OPTIONS}}

    def said(_name: str, call: ChatCall) -> Completion:
        return Completion(HONEST if call.reply_format == JSON_SCHEMA else few)

    body = {"mode": "verbal", "debias": False}
    with world(m=said) as made:
        made.engine.decide(load_decision({**body, "state": "1", "questions": short}), Deadline(30))
        for number in range(4):
            deadline = Deadline(30, effort=Effort(named=ModelsAllowance(0, 0)))
            large = {**body, "state": f"2 {number}", "questions": MANY}
            assert labels_of(made.engine.decide(load_decision(large), deadline)) == {"o7"}
        made.engine.decide(load_decision({**body, "state": "3", "questions": short}), Deadline(30))
        asked = [call.reply_format for _, call in made.client.calls]
    assert asked == [JSON_SCHEMA, *[JSON_SCHEMA, JSON_OBJECT] * 4, JSON_SCHEMA]


def test_a_long_text_is_not_read_once_replies_have_taken_their_time() -> None:
    """Nothing is learned of that, and short ones are read all the same."""
    long = names({"o7": 1}) + " " * SMALL_CHARS
    body = {"mode": "verbal", "debias": False, "questions": {"q": {**CHOICE, "options": OPTIONS}}}

    def said(_name: str, call: ChatCall) -> Completion:
        return Completion(long if call.reply_format == JSON_SCHEMA else names({"o8": 1}))

    with world(m=said) as made:
        for number, seconds in enumerate((1.0, 0.0, 1.0)):
            replies_s = ModelsAllowance(seconds, seconds)
            deadline = Deadline(30, effort=Effort(replies_s=replies_s))
            request = load_decision({**body, "state": f"{number}"})
            decision = made.engine.decide(request, deadline)
            assert labels_of(decision) == {"o7" if seconds else "o8"}
            assert replies_s.has_left("@here/m") is bool(seconds)
        asked = [call.reply_format for _, call in made.client.calls]
    assert asked == [JSON_SCHEMA, JSON_SCHEMA, JSON_OBJECT, JSON_SCHEMA]


def thinking(words: int, *labels: str) -> Completion:
    """Labels after so many words of thought, each a token."""
    texts = ["<think>", *[" thought"] * words, "</think>"]
    for label in labels:
        texts += ["\n", label]
    tokens = tuple(Token(one, -0.1, ((one, -0.1),)) for one in texts)
    return Completion("".join(texts), tokens)


@pytest.mark.parametrize("count", [1, 2])
def test_labels_after_long_thought_are_read_whatever_time_is_left(count: int) -> None:
    """To parse them took nearly all of the time that they take."""
    long = thinking(SMALL_CHARS // 40, *["yes"] * count)
    with world(m=lambda *_: long) as made:
        deadline = Deadline(30, effort=Effort(replies_s=ModelsAllowance(0.0, 0.0)))
        questions = {f"q{number}": NOUL for number in range(count)}
        body = {"state": "s", "questions": questions, "mode": "logprobs", "debias": True}
        decision = made.engine.decide(load_decision(body), deadline)
        assert len(made.client.calls) == 2
    assert decision.debiased


def test_long_lists_of_labels_are_not_read_once_replies_have_taken_their_time() -> None:
    options = {f"o{number}": "" for number in range(20)}
    multi = {"type": "multi", "instructions": "Which?", "options": options}
    questions = {f"q{number}": multi for number in range(20)}
    long = thinking(10, *["yes"] * 400)
    for seconds in (1.0, 0.0):
        with world(m=lambda *_: long) as made:
            deadline = Deadline(30, effort=Effort(replies_s=ModelsAllowance(seconds, seconds)))
            body = {"state": "s", "questions": questions, "mode": "logprobs", "debias": False}
            if seconds:
                made.engine.decide(load_decision(body), deadline)
                continue
            with pytest.raises(ApiError, match="more than is read"):
                made.engine.decide(load_decision(body), deadline)


def test_the_seconds_that_texts_take_to_read_count() -> None:
    class Recording(Effort):
        def __init__(self) -> None:
            super().__init__(replies_s=ModelsAllowance(2, 2))
            self.read: list[str] = []

        def reading(self, model: str, *_: Any) -> AbstractContextManager[None]:
            self.read.append(model)
            return super().reading(model, iter(range(2)).__next__)

    effort = Recording()
    with world() as made:
        for number in range(2):
            assert effort.replies_s.has_left("@here/m")
            body = {"state": f"{number}", "questions": {"q": NOUL}, "debias": False}
            request = load_decision(body)
            made.engine.decide(request, Deadline(30, effort=effort))
    assert effort.read == ["@here/m"] * 2
    assert not effort.replies_s.has_left("@here/m")


def test_sixteen_replies_of_a_model_that_thinks_are_within_what_is_read_of_it() -> None:
    """From vLLM: 1,200 tokens of thought, each with twenty alternatives and their bytes."""
    each = 320_000
    effort = Effort()
    assert all(effort.parts.take("m", each) for _ in range(16))


def test_long_texts_that_hold_rows_of_numbers_are_read() -> None:
    questions = {f"q{number}": {**TEXT, "max_length": 2_000} for number in range(1, 65)}
    row = ",".join(["1"] * 1_000)
    text = json.dumps({key: {"value": row, "confidence": 0.9} for key in questions})
    with world(m=lambda *_: Completion(text)) as made:
        request = load_decision({"state": f"The row is {row}", "questions": questions})
        decision = made.engine.decide(request, Deadline(30))
    assert decision.response()["answers"]["q64"]["value"] == row


def test_each_reply_is_read_in_a_turn_of_its_length() -> None:
    lengths: list[int] = []
    looked: list[int] = []
    text = json.dumps({"q1": {"yes": 0.8, "no": 0.2}, "q2": {"A": 0.7, "B": 0.3}})
    tokens = tuple(Token(one, -0.1, ((one, -0.1),)) for one in ("yes", "\n", "A"))

    @contextmanager
    def turn(chars: int) -> Iterator[bool]:
        lengths.append(chars)
        yield True

    def carry_out(calls: Sequence[Call]) -> Sequence[Outcome]:
        # Those that are asked for labels get tokens.
        return [
            Completion("yes\nA", tokens) if call.content.logprobs else Completion(text)  # type: ignore[union-attr]
            for call in calls
        ]

    runner = Runner(carry_out, turn, looked.append, print)
    material = PromptInput(PINS[NEWEST], QUESTIONS, "s")
    asked = [runner.attempt(way, (False, True), TARGET, material, False) for way in WAYS]
    assert [len(attempt.readings) for attempt in asked] == [2, 2]
    # Each token may have twenty alternatives, and what it spells is looked at as the text is.
    labels = 2 * len("yes\nA") + 3 * 80
    assert lengths == [len(text)] * 2 + [labels] * 2
    # Labels that stand on lines are not looked up by name.
    assert looked == [4, 4]


WAYS = (Way.SCHEMA, Way.LINES)


def test_replies_with_one_label_each_have_a_turn_each() -> None:
    lengths: list[int] = []

    @contextmanager
    def turn(chars: int) -> Iterator[bool]:
        lengths.append(chars)
        yield True

    def carry_out(calls: Sequence[Call]) -> Sequence[Outcome]:
        answers = zip(calls, ("yes", "A"), strict=True)
        return [Completion(one, (Token(one, -0.1, ((one, -0.1),)),)) for _, one in answers]

    runner = Runner(carry_out, turn, lambda _entries: None, print)
    material = PromptInput(PINS[NEWEST], QUESTIONS, "s")
    attempt = runner.attempt(Way.SINGLE, (False,), TARGET, material, False)
    assert len(attempt.readings) == 1
    assert lengths == [2 * 3 + 80, 2 * 1 + 80]


@pytest.mark.parametrize(("members", "part"), [(1, 1), (2, 2), (5, 5), (7, 5)])
def test_no_model_takes_the_time_for_the_replies_of_others(members: int, part: int) -> None:
    names = [f"m{number}" for number in range(members)]
    plan: Any = f"@here/{names[0]}" if members == 1 else {"cascade": [f"@here/{n}" for n in names]}
    effort = Effort(replies_s=ModelsAllowance(10.0))
    yes = Completion(json.dumps({"q1": {"yes": 0.9, "no": 0.1}}))
    with world(**dict.fromkeys(names, lambda *_: yes)) as made:
        body = {"state": "s", "questions": {"q": NOUL}, "model": plan, "mode": "verbal"}
        made.engine.decide(load_decision(body), Deadline(30, effort=effort))
    effort.replies_s.use("@here/m0", 10.0 / part - 0.5)
    assert effort.replies_s.has_left("@here/m0")
    effort.replies_s.use("@here/m0", 0.5)
    assert not effort.replies_s.has_left("@here/m0")
    assert effort.replies_s.has_left("@here/m1") is (members > 1)
