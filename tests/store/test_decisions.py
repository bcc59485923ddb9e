import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import pytest

from svc.records import Answer, DecisionFacts, Source
from svc.store import StorageError
from svc.store.audit_pages import ASKS
from svc.store.database import Database
from svc.store.decisions import Decisions, StoredReading
from svc.store.errors import UnknownDecision
from tests.clock import Clock
from tests.store.holding import held_up
from tests.store.processes import child, lines
from tests.store.records import asked, record

MARCH = 1_772_409_600.125  # 2026-03-02 in seconds since the epoch
UNKNOWN = "dec_01ARYZ6S41TSV4RRFFQ69G5FAV"


@pytest.fixture
def decisions(database):
    return Decisions(database, Clock(MARCH))


def wording(database, project, key):
    """The most recent definition of a key."""
    with database.read() as connection:
        (definition,) = connection.execute(
            "SELECT definition FROM asked JOIN questions ON id = question_id "
            "WHERE project = ? AND key = ?",
            (project, key),
        ).fetchone()
    return json.loads(definition)["instructions"]


def test_a_decision_comes_back_as_it_was_stored(decisions):
    given = record(
        project="Zürich ✓",
        api_key="key_1",
        privacy="strict",
        cached=True,
        provider_models="m-1 fp_1, m-2",
        ref="ticket 1",
        tags={"channel": "mail"},
        images=(b"\x00" * 32, b"\xff" * 32),
    )
    found = decisions.get(decisions.add(given))
    (entry,) = decisions.page("Zürich ✓", 1).entries
    for column in fields(DecisionFacts):
        assert getattr(found.facts, column.name) == getattr(given, column.name)
        assert getattr(entry.facts, column.name) == getattr(given, column.name)
    stored = {key: answer.fields for key, answer in found.answers.items()}
    assert stored == json.loads(entry.answers) == {"topic": given.answers["topic"].fields}
    assert json.loads(entry.images) == ["00" * 32, "ff" * 32]
    assert json.loads(entry.tags) == {"channel": "mail"}
    assert entry.created_at == 1_772_409_600_125
    assert decisions.entry(entry.id) == entry


def test_answers_and_readings_keep_the_order_of_the_questions(decisions):
    questions = tuple(asked(key, f"{key}?") for key in ("z", "a", "m"))
    found = decisions.get(decisions.add(record(*questions)))
    assert list(found.answers) == list(found.readings) == ["z", "a", "m"]


def test_readings_are_kept_with_the_row_of_their_exact_question(decisions):
    found = decisions.get(decisions.add(record(asked("a", "A?"), asked("b", "B?", None))))
    first, second = found.readings["a"], found.readings["b"]
    assert first.reading == [0.7, 0.3]
    assert second == StoredReading(second.question_id, None)
    assert first.question_id != second.question_id


def test_an_exact_question_is_stored_once_whatever_its_key_and_project(database, decisions):
    decisions.add(record(asked("a"), asked("b")))
    decisions.add(record(asked("c"), project="other"))
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM questions").fetchone()[0] == 1


@pytest.mark.parametrize("wordings", [["one"], ["one", "two"], ["one", "two", "one"]])
def test_the_most_recent_wording_of_a_key_is_known(database, decisions, wordings):
    for instructions in wordings:
        decisions.add(record(asked("key", instructions)))
    assert wording(database, "default", "key") == wordings[-1]


def test_the_most_recent_wording_is_known_when_all_share_a_transaction(database, decisions):
    records = [record(asked("key", words)) for words in ("one", "two", "one")]
    with held_up(database._writer) as enqueue:
        ids = [enqueue(decisions.add, one) for one in records]
    page = decisions.page("default", 9).entries
    assert [one.id for one in page] == [i.result() for i in ids[::-1]]
    first, second, third = (decisions.get(one.id).readings["key"].question_id for one in page)
    assert first == third != second
    assert wording(database, "default", "key") == "one"


def test_each_project_has_its_own_wording_of_a_key(database, decisions):
    decisions.add(record(asked("key", "one"), project="a"))
    decisions.add(record(asked("key", "two"), project="b"))
    assert (wording(database, "a", "key"), wording(database, "b", "key")) == ("one", "two")


def test_ids_grow_with_every_decision_of_many_threads(decisions):
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda _: decisions.add(record()), range(400)))
    assert len(set(ids)) == 400
    page = decisions.page("default", 1_000).entries
    assert [one.id for one in page] == sorted(ids, reverse=True)


def test_ids_grow_though_the_clock_jumps_back_and_the_server_restarts(path):
    ids = []
    for now in (MARCH, MARCH - 1_000_000, 0.0):
        clock = Clock(MARCH)
        clock.now = now
        database = Database.open(path)
        ids += [Decisions(database, clock).add(record()) for _ in range(2)]
        database.close()
    assert ids == sorted(set(ids))


def test_ids_of_two_processes_are_all_different_and_all_stored(path):
    with child("add", path, "100") as first, child("add", path, "100") as second:
        printed = [lines(process) for process in (first, second)]
    assert all(ids == sorted(ids) for ids in printed)
    database = Database.open(path)
    stored = [one.id for one in Decisions(database).page("default", 1_000).entries]
    database.close()
    assert stored == sorted(printed[0] + printed[1], reverse=True)
    assert len(set(stored)) == 200


def test_an_id_may_be_read_as_soon_as_it_is_given(decisions):
    for _ in range(50):
        given = decisions.add(record())
        assert decisions.get(given) is not None


@pytest.mark.parametrize("decision_id", [UNKNOWN, "", "dec_", "nonsense", "dec_'; DROP TABLE--"])
def test_an_unknown_id_finds_nothing(decisions, decision_id):
    decisions.add(record())
    assert decisions.get(decision_id) is None


def test_pages_lead_through_a_projects_decisions_newest_first(decisions):
    ids = [decisions.add(record(project="mine")) for _ in range(7)]
    decisions.add(record(project="other"))
    seen, before = [], None
    while page := decisions.page("mine", 3, before).entries:
        seen += [one.id for one in page]
        before = seen[-1]
    assert seen == ids[::-1]


def test_a_project_without_decisions_has_an_empty_page(decisions):
    assert decisions.page("nobody's", 10).entries == []


@pytest.mark.parametrize("before", [UNKNOWN, "nonsense", ""])
def test_a_page_before_an_unknown_decision_is_not_found(decisions, before):
    with pytest.raises(UnknownDecision, match="no such decision"):
        decisions.page("default", 10, before)


def test_a_page_before_another_projects_decision_is_not_found(decisions):
    theirs = decisions.add(record(project="theirs"))
    with pytest.raises(UnknownDecision):
        decisions.page("mine", 10, theirs)


@pytest.mark.parametrize(
    "text", ["\ud800", "\x00", "\u2028", '"\\', "\U0001d518", "'); DROP TABLE decisions"]
)
def test_text_that_a_model_made_up_is_kept_as_it_is(decisions, text):
    given = record(
        asked("key", reading=text), answers={"key": Answer(Source.MODELS, {"value": text})}
    )
    found = decisions.get(decisions.add(given))
    assert found.answers["key"].fields == {"value": text}
    assert found.readings["key"].reading == text


def test_an_answer_that_is_no_json_is_refused_before_it_reaches_the_writer(decisions):
    with pytest.raises(ValueError, match="JSON"):
        decisions.add(record(answers={"key": Answer(Source.MODELS, {"value": float("nan")})}))
    assert decisions.page("default", 1).entries == []


def test_a_decision_takes_less_than_a_kilobyte_of_the_file(path):
    database = Database.open(path)
    decisions = Decisions(database)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: decisions.add(record()), range(2_000)))
    database.close()
    assert path.stat().st_size / 2_000 < 1_000


def test_a_page_is_found_without_looking_at_other_projects(database):
    with database.read() as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT * FROM decisions WHERE project = 'a' AND seq < 9 "
            "ORDER BY seq DESC LIMIT 5"
        ).fetchall()
    steps = [step["detail"] for step in plan]
    assert len(steps) == 1 and "decisions_by_project (project=? AND seq<?)" in steps[0]


def test_a_question_is_looked_for_without_reading_decisions_that_do_not_ask_it(database):
    """In a row it stands behind readings and answers, which may be long."""
    with database.read() as connection:
        program = connection.execute(
            f"EXPLAIN SELECT readings FROM decisions WHERE project = 'a' AND seq > 1 AND {ASKS} "
            "ORDER BY seq DESC",
            (7,),
        ).fetchall()
    index = next(step["p1"] for step in program if str(step["p4"]).startswith("k("))
    condition = next(at for at, step in enumerate(program) if str(step["p4"]).startswith("instr"))
    read = [(step["p1"], at) for at, step in enumerate(program) if step["opcode"] == "Column"]
    assert {cursor for cursor, at in read if at < condition} == {index}
    assert {cursor for cursor, at in read if at > condition} != {index}


def test_a_write_that_fails_leaves_no_part_of_the_decision(database, decisions):
    def refuse(connection: sqlite3.Connection) -> None:
        connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON decisions "
            "BEGIN SELECT raise(ABORT, 'refused'); END"
        )

    database.write(refuse)
    with pytest.raises(StorageError):
        decisions.add(record())
    with database.read() as connection:
        for table in ("decisions", "questions", "asked"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0


def test_a_page_ends_where_its_texts_are_too_long_but_not_before_the_first(decisions):
    ids = [decisions.add(record(project="mine")) for _ in range(5)]
    whole = decisions.page("mine", 10)
    assert (len(whole.entries), whole.next_before) == (5, None)
    cut = decisions.page("mine", 10, most_bytes=1)
    assert ([one.id for one in cut.entries], cut.next_before) == ([ids[-1]], ids[-1])
    last = decisions.page("mine", 10, before=ids[1], most_bytes=1)
    assert ([one.id for one in last.entries], last.next_before) == ([ids[0]], None)


def long_one(**fields):
    """A decision with 20 KB of answers and readings."""
    p = {f"option {place}": 0.001 for place in range(500)}
    said = Answer(Source.MODELS, {"choice": "a", "probabilities": p}, top="a", confidence=0.7)
    return record(asked("topic"), answers={"topic": said}, **fields)


@pytest.mark.parametrize(
    "key", ["topic", "a.b", "$", "", '"topic"', "back\\slash \\u0041", "[0]", "Zürich 🚲", "'; --"]
)
def test_one_answer_of_a_decision_is_read_by_its_key(decisions, key):
    """Keys may hold whatever a path into JSON would take for more than a name."""
    said = {"value": 'a "\ud800" \\', "confidence": 0.1, "sets": {"0.9": [None, True, 1e-7]}}
    answers = {"other": Answer(Source.RULE, {"rule": 1}), key: Answer(Source.MODELS, said)}
    made = decisions.add(record(asked("other"), asked(key), answers=answers))
    assert decisions.answer(made, key) == decisions.get(made).answers[key].fields == said
    assert decisions.answer(made, "another") is None
    assert decisions.answer(UNKNOWN, key) is None


def test_one_answer_is_read_where_the_decision_refers_to_another_for_it(decisions):
    first, again = (decisions.add(long_one()) for _ in range(2))
    assert decisions.answer(again, "topic") == decisions.get(first).answers["topic"].fields


def test_a_long_decision_that_says_the_same_again_is_written_once(database, decisions):
    first = decisions.add(long_one())
    again = decisions.add(long_one(cached=True, latency_ms=0.0))
    elsewhere = decisions.add(long_one(project="other"))
    whole = decisions.get(first)
    assert len(json.dumps(whole.answers["topic"].fields)) > 10_000
    for one in (again, elsewhere):
        found = decisions.get(one)
        assert (found.answers, found.readings) == (whole.answers, whole.readings)
    assert decisions.get(again).facts.cached
    newest, oldest = decisions.page("default", 9).entries
    assert newest.answers == oldest.answers
    rows = database.rows("SELECT length(answers) AS n, same_as FROM decisions ORDER BY seq")
    assert [(row["n"] > 0, row["same_as"]) for row in rows] == [
        (True, None),
        (False, 1),
        (True, None),
    ]


def test_a_decision_never_refers_to_one_that_was_not_stored(database, decisions):
    """A failure in the same transaction undoes the first attempt at both."""

    def fail(connection):
        connection.execute("INSERT INTO nowhere VALUES (1)")

    with held_up(database._writer) as enqueue:
        first = enqueue(decisions.add, long_one())
        failing = enqueue(database.write, fail)
        second = enqueue(decisions.add, long_one())
    assert isinstance(failing.exception(), StorageError)
    for one in (first, second):
        assert decisions.get(one.result()).answers["topic"].fields["choice"] == "a"
