import pytest

from svc.store import StorageError
from svc.store.budget import CallBudget
from svc.store.database import Database
from tests.store.processes import child, lines

DAY, NEXT_DAY = "2026-03-02", "2026-03-03"


def test_calls_are_let_through_up_to_the_limit_and_counted(database):
    budget = CallBudget(database)
    assert [budget.take(DAY, 3) for _ in range(5)] == [True, True, True, False, False]
    assert budget.spent(DAY) == 3


def test_each_day_has_a_budget_of_its_own(database):
    budget = CallBudget(database)
    assert budget.take(DAY, 1) and budget.take(NEXT_DAY, 1)
    assert not budget.take(DAY, 1)


def test_a_day_without_calls_has_spent_nothing(database):
    assert CallBudget(database).spent(DAY) == 0


def test_a_limit_that_was_lowered_below_what_is_spent_lets_nothing_through(database):
    budget = CallBudget(database)
    assert budget.take(DAY, 10) and budget.take(DAY, 10)
    assert not budget.take(DAY, 1)
    assert budget.spent(DAY) == 2


def test_a_limit_of_zero_lets_nothing_through(database):
    assert not CallBudget(database).take(DAY, 0)
    assert CallBudget(database).spent(DAY) == 0


def test_what_is_spent_outlasts_a_restart(path):
    for taken in (True, False):
        database = Database.open(path)
        assert CallBudget(database).take(DAY, 1) is taken
        database.close()


def test_two_processes_together_take_exactly_the_limit(path):
    with child("take", path, "60") as first, child("take", path, "60") as second:
        taken = [int(lines(process)[0]) for process in (first, second)]
    assert sum(taken) == 60


def test_a_closed_database_takes_no_call(path):
    database = Database.open(path)
    database.close()
    with pytest.raises(StorageError, match="closed"):
        CallBudget(database).take(DAY, 1)
