import contextlib
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from svc import processor_time
from svc.store import StorageError, connections
from svc.store.database import Database
from svc.store.writer import Writer
from tests.busy import use_processor
from tests.store.holding import TIMEOUT_S, held_up, until


class Failing:
    """A connection on which chosen statements fail, as often as told."""

    def __init__(self, connection: sqlite3.Connection, failures: dict[str, int]) -> None:
        self._connection, self._failures = connection, failures
        self.seen: list[str] = []

    def execute(self, statement: str, *parameters: object) -> sqlite3.Cursor:
        self.seen.append(statement)
        if self._failures.get(statement, 0) > 0:
            self._failures[statement] -= 1
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(statement, *parameters)

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


class Bench:
    """A writer on a real file whose connections can be told to fail."""

    def __init__(self, path, patience: float) -> None:
        self.path = path
        self.failures: dict[str, int] = {}
        self.opened: list[Failing] = []
        self.writer = Writer(self._connect, batch=64, patience_s=patience)

    def _connect(self) -> Failing:
        connection = Failing(connections.writing(self.path), self.failures)
        self.opened.append(connection)
        return connection

    def write(self, fn, timeout=TIMEOUT_S):
        return self.writer.write(each, fn, timeout)

    def together(self, functions):
        """Write all of them in one batch; results and exceptions in order."""
        with held_up(self.writer) as enqueue:
            futures = [enqueue(self.write, fn) for fn in functions]
        return [future.exception() or future.result() for future in futures]

    def commits(self) -> int:
        return sum(connection.seen.count("COMMIT") for connection in self.opened)


def each(connection, functions):
    return [fn(connection) for fn in functions]


def note(text):
    def insert(connection):
        connection.execute("INSERT INTO meta VALUES (?, 'x')", (text,))
        return text

    return insert


def spoil(text):
    """Writes, and fails afterwards."""

    def insert(connection):
        note(text)(connection)
        raise KeyError(text)

    return insert


@pytest.fixture
def bench(path):
    Database.open(path).close()
    made = Bench(path, patience=0.02)
    yield made
    made.writer.close()


@pytest.fixture
def notes(path):
    """What is stored, as another connection sees it."""
    connection = connections.connect(path, "rw")
    yield lambda: {
        name for (name,) in connection.execute("SELECT name FROM meta WHERE name <> 'salt'")
    }
    connection.close()


def test_a_function_gets_its_result_back_once_it_is_stored(bench, notes):
    assert bench.write(note("a")) == "a"
    assert notes() == {"a"}


def test_what_waits_shares_one_transaction(bench, notes):
    texts = [f"n{i}" for i in range(30)]
    assert bench.together([note(text) for text in texts]) == texts
    assert bench.commits() == 2  # the one that held the writer up, and all the others
    assert notes() == set(texts)


def test_neighbours_with_the_same_handler_are_handed_over_together(bench):
    calls = []

    def handler(connection, items):
        calls.append(list(items))
        return [item * 2 for item in items]

    with held_up(bench.writer) as enqueue:
        futures = [enqueue(bench.writer.write, handler, item, TIMEOUT_S) for item in range(5)]
    assert [future.result() for future in futures] == [0, 2, 4, 6, 8]
    assert calls == [[0, 1, 2, 3, 4]]


def test_what_the_writer_uses_is_of_those_who_wait_by_the_size_of_their_items(bench):
    def works(connection, items):
        use_processor(0.03)
        return items

    def used_by(size):
        began = processor_time.used_s()
        bench.writer.write(works, size, TIMEOUT_S, size)
        return processor_time.used_s() - began

    with held_up(bench.writer) as enqueue:
        small, large = enqueue(used_by, 1), enqueue(used_by, 16)
    assert large.result() > 0.025 > 0.01 > small.result()


def test_what_is_small_goes_before_what_is_large(bench):
    """A small decision waited for all of 650 questions that had come before it."""
    stored = []

    def note(connection, items):
        stored.append(items)
        return items

    with held_up(bench.writer) as enqueue:
        larges = [enqueue(bench.writer.write, note, name, TIMEOUT_S, 200) for name in "abc"]
        smalls = [enqueue(bench.writer.write, note, name, TIMEOUT_S, 16) for name in "xy"]
        middle = enqueue(bench.writer.write, note, "d", TIMEOUT_S, 17)
    for written in (*larges, *smalls, middle):
        written.result()
    assert stored == [["x", "y"], ["a"], ["b"], ["c", "d"]]


def test_each_write_is_charged_with_what_it_takes_itself(path):
    def works(connection):
        use_processor(0.03)

    def used_by(fn, size):
        began = processor_time.used_s()
        database.write(fn, size=size)
        return processor_time.used_s() - began

    database = Database.open(path)
    with held_up(database._writer) as enqueue:
        heavy, light = enqueue(used_by, works, 1), enqueue(used_by, lambda _: None, 1_000)
    assert heavy.result() > 0.025 > 0.01 > light.result()
    database.close()


def test_of_a_long_write_all_the_time_counts_for_which_others_wait(path):
    def waits(connection):
        use_processor(0.03)
        time.sleep(0.1)

    with contextlib.closing(Database.open(path)) as database:
        began = processor_time.used_s()
        database.write_long(waits, 1)
        assert processor_time.used_s() - began >= 0.13


@pytest.mark.parametrize("bad", [{0}, {6}, {3}, {0, 1, 2}, set(range(7))])
def test_one_that_fails_gets_its_own_exception_and_its_neighbours_are_stored(bench, notes, bad):
    functions = [spoil(str(i)) if i in bad else note(str(i)) for i in range(7)]
    results = bench.together(functions)
    for i, result in enumerate(results):
        if i in bad:
            assert isinstance(result, KeyError) and result.args == (str(i),)
        else:
            assert result == str(i)
    assert notes() == {str(i) for i in range(7) if i not in bad}


def test_one_bad_neighbour_does_not_cost_a_transaction_for_each_good_one(bench):
    bench.together([spoil("bad"), *(note(str(i)) for i in range(31))])
    assert bench.commits() <= 1 + 5  # one to hold the writer up, then halves of halves


def test_a_breach_of_the_schema_is_a_storage_error_of_the_one_who_did_it(bench, notes):
    results = bench.together([note("a"), note("a"), note("b")])
    assert [type(result) for result in results] == [str, StorageError, str]
    assert "UNIQUE" not in results[1].message
    assert notes() == {"a", "b"}


def test_a_commit_that_fails_stores_nothing_and_the_writer_goes_on(bench, notes):
    bench.failures["COMMIT"] = 1
    with pytest.raises(StorageError, match="failed"):
        bench.write(note("a"))
    assert notes() == set()
    assert bench.write(note("b")) == "b"


def test_a_commit_that_fails_for_many_is_tried_again_for_fewer(bench, notes):
    def fail_the_next_commit(connection):
        if not connection.seen.count("ROLLBACK"):
            bench.failures["COMMIT"] = 1
        return "told"

    functions = [fail_the_next_commit, *(note(str(i)) for i in range(4))]
    assert bench.together(functions) == ["told", "0", "1", "2", "3"]
    assert notes() == {"0", "1", "2", "3"}


def test_a_broken_connection_is_replaced_and_the_write_succeeds(bench):
    bench.write(note("a"))
    bench.failures["BEGIN IMMEDIATE"] = 1
    assert bench.write(note("b")) == "b"
    assert len(bench.opened) == 2


def test_a_rollback_that_fails_costs_the_connection_and_nothing_else(bench, notes):
    bench.write(note("a"))
    bench.failures["ROLLBACK"] = 1
    with pytest.raises(KeyError):
        bench.write(spoil("b"))
    assert bench.write(note("c")) == "c"
    assert notes() == {"a", "c"}


def test_a_connection_that_a_function_closed_is_replaced(bench):
    with pytest.raises(StorageError):
        bench.write(lambda connection: connection.close())
    assert bench.write(note("a")) == "a"


def test_a_file_that_cannot_be_opened_again_is_a_storage_error_until_it_can(path):
    Database.open(path).close()
    away = path.with_suffix(".away")
    path.rename(away)
    writer = Writer(partial(connections.writing, path), batch=4)
    with pytest.raises(StorageError):
        writer.write(each, note("a"), TIMEOUT_S)
    away.rename(path)
    assert writer.write(each, note("a"), TIMEOUT_S) == "a"
    writer.close()


def test_a_database_locked_for_too_long_is_a_storage_error_and_the_writer_goes_on(
    bench, path, notes
):
    bench.write(note("before"))
    with contextlib.closing(connections.connect(path, "rw")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="locked"):
            bench.write(note("meanwhile"))
    assert bench.write(note("after")) == "after"
    assert notes() == {"before", "after"}
    assert len(bench.opened) == 1  # a lock is no reason to open the file again


def test_a_lock_that_is_given_up_in_time_is_waited_for(path):
    Database.open(path).close()
    patient = Bench(path, patience=TIMEOUT_S)
    other = connections.connect(path, "rw")
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(patient.write, note("a"))
        until(lambda: patient.opened and patient.opened[0].seen.count("BEGIN IMMEDIATE") > 1)
        other.execute("ROLLBACK")
        assert future.result(TIMEOUT_S) == "a"
    other.close()
    patient.writer.close()


def test_a_write_inside_a_write_is_refused_and_the_writer_goes_on(bench):
    with pytest.raises(RuntimeError, match="inside a write"):
        bench.write(lambda _: bench.write(note("a")))
    assert bench.write(note("b")) == "b"


def test_a_caller_waits_no_longer_than_its_timeout_and_the_others_are_answered(bench, notes):
    with held_up(bench.writer) as enqueue:
        first = enqueue(bench.write, note("first"))
        with pytest.raises(StorageError, match=r"within 0\.01 s"):
            bench.write(note("impatient"), timeout=0.01)
        last = enqueue(bench.write, note("last"))
    assert (first.result(), last.result()) == ("first", "last")
    assert notes() == {"first", "impatient", "last"}


def test_callers_that_give_up_at_any_moment_never_leave_another_one_waiting(bench):
    """Timeouts as long as a transaction takes, so that giving up and being answered meet."""
    done = []

    def impatient(worker):
        for i in range(60):
            with contextlib.suppress(StorageError):
                bench.write(note(f"{worker}-{i}"), timeout=(i % 7) * 0.0005)

    def patient(worker):
        for i in range(60):
            done.append(bench.write(note(f"p{worker}-{i}"), timeout=TIMEOUT_S))

    with ThreadPoolExecutor(12) as pool:
        futures = [pool.submit(impatient, worker) for worker in range(6)]
        futures += [pool.submit(patient, worker) for worker in range(6)]
        for future in futures:
            future.result(60)
    assert len(done) == 360


def test_a_closed_writer_has_written_all_that_waited_and_takes_no_more(bench, notes):
    texts = [str(i) for i in range(10)]
    with held_up(bench.writer) as enqueue:
        futures = [enqueue(bench.write, note(text)) for text in texts]
        closing = enqueue(bench.writer.close)
        with pytest.raises(StorageError, match="closed"):
            bench.write(note("late"))
    closing.result()
    assert [future.result() for future in futures] == texts
    assert notes() == set(texts)


def test_a_writer_may_be_closed_twice(bench):
    bench.writer.close()
    bench.writer.close()
