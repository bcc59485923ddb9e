import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from svc.spending import Lack, Slices
from svc.store import (
    NANO,
    Account,
    Budget,
    Budgets,
    Claim,
    Database,
    Grant,
    Per,
    Scope,
    StorageError,
    WriteTimedOut,
)
from tests.limited import ONLY_ROOT, errors_of
from tests.store.processes import child

SHOP = Account(Scope.PROJECT, "shop", Per.DAY, "2026-11-22")
MONTH = Account(Scope.PROJECT, "shop", Per.MONTH, "2026-11")
NOW = 1_795_348_800.0  # in that day
LONG_S = 3_600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "svc.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    opened = Database.open(path)
    yield opened
    opened.close()


@pytest.fixture
def budgets(database: Database) -> Budgets:
    made = Budgets(database, now=lambda: NOW)
    made.set(Budget(Scope.PROJECT, "shop", Per.DAY, 10 * NANO))
    return made


class Counted:
    """Counts the claims that reach the database, and may let them fail."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets, self.claims, self.error = budgets, 0, None

    def __call__(self, claims: Sequence[Claim]) -> list[Grant]:
        self.claims += 1
        if self.error is not None:
            raise self.error
        return self._budgets.claim(claims)


@pytest.fixture
def counted(budgets: Budgets) -> Counted:
    return Counted(budgets)


@pytest.fixture
def slices(counted: Counted) -> Iterator[Slices]:
    made = Slices(counted, LONG_S)
    yield made
    made.close()


@pytest.mark.parametrize("accounts", [(SHOP, MONTH), (MONTH, SHOP)])
def test_what_one_budget_refuses_stays_reserved_of_no_other(
    budgets: Budgets, slices: Slices, accounts: Sequence[Account]
) -> None:
    budgets.set(Budget(Scope.PROJECT, "shop", Per.MONTH, NANO))
    assert slices.reserve([SHOP], NANO // 100) is None
    assert slices.reserve(accounts, 5 * NANO) == Lack(MONTH, later=False)
    # A process that is killed now takes with it what its own calls may have cost.
    assert [one.reserved for one in budgets.states()] == [NANO // 100, 0]
    assert slices.reserve([SHOP], 9 * NANO) is None


def dollars(budgets: Budgets) -> tuple[float, float]:
    """What is spent and reserved."""
    (state,) = budgets.states()
    return state.spent / NANO, state.reserved / NANO


def reserved(slices: Slices, amount: float, *accounts: Account) -> bool:
    return slices.reserve(accounts or (SHOP,), int(amount * NANO)) is None


def test_what_would_fit_without_calls_under_way_is_told_from_what_is_spent(
    slices: Slices,
) -> None:
    assert reserved(slices, 8)
    lack = slices.reserve((SHOP,), 5 * NANO)
    assert lack is not None and (lack.account, lack.later) == (SHOP, True)
    slices.settle([SHOP], 8 * NANO, 8 * NANO)
    lack = slices.reserve((SHOP,), 5 * NANO)
    assert lack is not None and not lack.later
    assert reserved(slices, 2)


def test_exactly_the_limit_is_admitted(slices: Slices) -> None:
    assert [reserved(slices, 2.5) for _ in range(5)] == [True] * 4 + [False]


def test_what_was_reserved_and_not_spent_can_be_spent(slices: Slices) -> None:
    for _ in range(19):
        assert reserved(slices, 1)
        slices.settle([SHOP], NANO, NANO // 2)
    assert not reserved(slices, 0.501)
    assert reserved(slices, 0.5)


def test_at_the_limit_calls_that_come_together_ask_once(budgets: Budgets) -> None:
    """Each asked after the one before, and calls with other budgets waited for all of them."""
    claims, begun, goes_on = [], threading.Event(), threading.Event()

    def claim(wanted: Sequence[Claim]) -> list[Grant]:
        claims.append(wanted)
        begun.set()
        goes_on.wait()
        return budgets.claim(wanted)

    slices = Slices(claim, LONG_S, clock=lambda: 0.0)
    with ThreadPoolExecutor(20) as threads:
        calls = [threads.submit(reserved, slices, 11) for _ in range(20)]
        begun.wait()
        # Most of the others wait for the first one now.
        goes_on.wait(0.1)
        goes_on.set()
        assert not any(call.result() for call in calls)
    assert len(claims) == 1
    slices.close()


def test_at_the_limit_not_every_call_writes(counted: Counted) -> None:
    seconds = [0.0]
    slices = Slices(counted, LONG_S, clock=lambda: seconds[0])
    assert reserved(slices, 10)
    before = counted.claims
    assert not any(reserved(slices, 1) for _ in range(100))
    assert counted.claims == before + 1
    # Less may still fit, and what calls leave is there at once.
    assert not reserved(slices, 0.5)
    assert counted.claims == before + 2
    slices.settle([SHOP], 10 * NANO, 9 * NANO)
    assert reserved(slices, 1)
    assert not reserved(slices, 1)
    counted._budgets.set(Budget(Scope.PROJECT, "shop", Per.DAY, 20 * NANO))
    assert not reserved(slices, 1)
    seconds[0] += 1
    assert reserved(slices, 1)
    slices.close()


def test_a_reservation_lies_in_the_database_before_the_call(
    slices: Slices, budgets: Budgets
) -> None:
    reserved(slices, 3)
    assert dollars(budgets) == (0, 3)


def test_what_was_spent_lies_there_once_the_slices_are_closed(
    slices: Slices, budgets: Budgets
) -> None:
    reserved(slices, 3)
    slices.settle([SHOP], 3 * NANO, NANO)
    slices.close()
    assert dollars(budgets) == (1, 0)


def test_many_small_calls_are_few_writes(slices: Slices, counted: Counted) -> None:
    for _ in range(1_000):
        assert reserved(slices, 0.001)
        slices.settle([SHOP], NANO // 1_000, NANO // 1_000)
    assert counted.claims <= 25


def test_what_calls_did_not_need_goes_back_within_seconds(counted: Counted) -> None:
    slices, budgets = Slices(counted, look_every_s=0.01), counted._budgets
    reserved(slices, 4)
    slices.settle([SHOP], 4 * NANO, NANO)
    for _ in range(1_000):
        if dollars(budgets) == (1, 0):
            break
        threading.Event().wait(0.01)
    assert dollars(budgets) == (1, 0)
    slices.close()


def test_a_call_that_cost_more_than_expected_counts_at_once(
    slices: Slices, budgets: Budgets
) -> None:
    reserved(slices, 1)
    slices.settle([SHOP], NANO, 10 * NANO)
    assert dollars(budgets) == (10, 0)
    assert not reserved(slices, 0.001)


def test_what_a_look_handed_in_meanwhile_is_not_handed_in_again(budgets: Budgets) -> None:
    """A call that cost more than expected waits until others have claimed; a look comes first."""
    claiming, go_on = threading.Event(), threading.Event()

    def claim(claims: Sequence[Claim]) -> list[Grant]:
        if any(one.account == MONTH for one in claims):
            claiming.set()
            go_on.wait(30)
        return budgets.claim(claims)

    slices = Slices(claim, look_every_s=0.01)
    assert reserved(slices, 1, SHOP)
    with ThreadPoolExecutor(2) as threads:
        other = threads.submit(reserved, slices, 1, MONTH)
        assert claiming.wait(30)
        # The look waits by now, and so does then what is settled.
        threading.Event().wait(0.2)
        settled = threads.submit(slices.settle, [SHOP], NANO, 2 * NANO)
        threading.Event().wait(0.1)
        go_on.set()
        assert other.result(30)
        settled.result(30)
    slices.settle([MONTH], NANO, 0)
    slices.close()
    assert dollars(budgets) == (2, 0)


def test_of_two_budgets_both_must_have_room(slices: Slices, budgets: Budgets) -> None:
    budgets.set(Budget(Scope.PROJECT, "shop", Per.MONTH, 3 * NANO))
    both = (SHOP, MONTH)
    assert reserved(slices, 2, *both)
    assert slices.reserve(both, 2 * NANO) == Lack(MONTH, later=True)
    assert reserved(slices, 1, *both)
    slices.close()
    assert [state.reserved / NANO for state in budgets.states()] == [3, 3]


def test_the_warning_level_has_a_line_in_the_log(
    slices: Slices, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        reserved(slices, 7)
        assert not caplog.records
        reserved(slices, 1)
        reserved(slices, 1)
    (record,) = caplog.records
    assert record.getMessage() == 'the budget of project "shop" has reached 80% of $10 a day'


def test_a_refused_write_changes_nothing(
    slices: Slices, counted: Counted, budgets: Budgets
) -> None:
    reserved(slices, 4)
    slices.settle([SHOP], 4 * NANO, 1 * NANO)
    counted.error = StorageError("full")
    with pytest.raises(StorageError):
        reserved(slices, 6)
    counted.error = None
    assert reserved(slices, 9)
    assert dollars(budgets) == (1, 9)


def test_a_write_that_may_have_come_through_counts_as_spent(
    slices: Slices, counted: Counted, budgets: Budgets
) -> None:
    reserved(slices, 4)
    slices.settle([SHOP], 4 * NANO, 1 * NANO)
    counted.error = WriteTimedOut("slow")
    with pytest.raises(StorageError):
        reserved(slices, 6)
    counted.error = None
    assert not reserved(slices, 9)


def test_threads_together_are_admitted_up_to_the_limit(slices: Slices, budgets: Budgets) -> None:
    def spend(_: int) -> int:
        admitted = 0
        while reserved(slices, 0.05):
            slices.settle([SHOP], NANO // 20, NANO // 25)
            admitted += 1
        return admitted

    with ThreadPoolExecutor(16) as threads:
        admitted = sum(threads.map(spend, range(16)))
    slices.close()
    spent, left = dollars(budgets)
    assert left == 0
    assert spent == pytest.approx(admitted * 0.04)
    assert 10 - 16 * 0.05 <= spent <= 10


def test_processes_that_are_killed_never_spend_more_than_the_limit(path: Path) -> None:
    """Fifty calls at once in three processes, two of which are killed and followed by others."""
    database = Database.open(path)
    budgets = Budgets(database, now=lambda: NOW)
    budgets.set(Budget(Scope.PROJECT, "shop", Per.DAY, 10 * NANO))
    killed, begun = 6, 0
    with ExitStack() as stack:
        processes = [stack.enter_context(child("spend", path, "17")) for _ in range(3)]
        for number in range(killed):
            process = processes.pop(0)
            assert process.stdout is not None
            process.stdout.readline()
            threading.Event().wait(0.05)
            os.kill(process.pid, signal.SIGKILL)
            begun += 1 + len(process.stdout.readlines())
            if number < killed - 1:
                processes.append(stack.enter_context(child("spend", path, "17")))
        last = stack.enter_context(child("spend", path, "17"))
        for process in (*processes, last):
            assert process.stdout is not None
            begun += len(process.stdout.readlines())
            assert process.wait() == 0
    (state,) = budgets.states()
    assert begun * 0.002 <= state.spent / NANO + state.reserved / NANO + 1e-9
    assert state.spent + state.reserved <= 10 * NANO
    # What killed processes had reserved is lost: at most a hundredth and the calls under way each.
    assert state.reserved / NANO <= killed * (0.1 + 17 * 0.002)
    # Nothing more is admitted.
    slices = Slices(budgets.claim, LONG_S)
    admitted = 0
    while reserved(slices, 0.002):
        admitted += 1
    assert admitted <= 17 * 3
    slices.close()
    database.close()


SCRIPT = """
from svc.spending.slices import Slices
from svc.store import Grant
from tests.limited import limit_to
from tests.spending.test_slices import SHOP

limit_to(1)
slices = Slices(lambda claims: [Grant(one.wish, None) for one in claims])
assert slices.reserve([SHOP], 10) is None
slices.settle([SHOP], 10, 10)
slices.close()
"""


@ONLY_ROOT
def test_an_amount_is_reserved_where_the_system_allows_no_further_thread() -> None:
    errors_of(SCRIPT)
