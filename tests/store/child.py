"""What tests run in a process of its own: `python -m tests.store.child <command> <path> ...`."""

import resource
import sys
import threading
import time

from svc.spending import Slices
from svc.store import NANO, Account, Budgets, Per, Scope, StorageError
from svc.store.budget import CallBudget
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.keys import ApiKeys
from tests.store.records import record

THREADS = 8
FILE_BYTES = 400_000


def say(line: str) -> None:
    """One line to the parent, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def add_for_ever(path: str) -> None:
    """Print the id of each decision after it was stored, from many threads."""
    decisions = Decisions(Database.open(path))

    def add() -> None:
        while True:
            say(decisions.add(record()))

    threads = [threading.Thread(target=add) for _ in range(THREADS)]
    for thread in threads:
        thread.start()


def add(path: str, count: str) -> None:
    """Print the ids of `count` decisions."""
    database = Database.open(path)
    decisions = Decisions(database)
    for _ in range(int(count)):
        say(decisions.add(record()))
    database.close()


def take(path: str, limit: str) -> None:
    """Take calls of one day until there are none left; print how many there were."""
    database = Database.open(path)
    budget = CallBudget(database)
    taken = 0
    while budget.take("2026-03-02", int(limit)):
        taken += 1
    database.close()
    say(str(taken))


def spend(path: str, threads: str) -> None:
    """Spend a day's budget of a project by calls of 2 ms; a line for each that was admitted."""
    database = Database.open(path)
    slices = Slices(Budgets(database).claim)
    account = Account(Scope.PROJECT, "shop", Per.DAY, "2026-11-22")

    def call() -> None:
        while slices.reserve([account], NANO // 500) is None:
            say("admitted")
            time.sleep(0.002)
            slices.settle([account], NANO // 500, NANO // 500)

    running = [threading.Thread(target=call) for _ in range(int(threads))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    slices.close()
    database.close()


def open_at_once(path: str) -> None:
    """Open when the parent says so; print the salt."""
    say("ready")
    sys.stdin.readline()
    database = Database.open(path)
    say(database.salt.hex())
    database.close()


def fill(path: str) -> None:
    """Add until files may not grow any more, then go on with more room; print the ids."""
    database = Database.open(path)
    decisions = Decisions(database)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, resource.RLIM_INFINITY))
    try:
        while True:
            say(decisions.add(record(model="m" * 10_000)))
    except StorageError as error:
        say(f"full: {error}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    say(decisions.add(record()))
    database.close()


def make_keys(path: str, name: str, count: str) -> None:
    """Make API keys for `name` and a number; print their texts."""
    database = Database.open(path)
    keys = ApiKeys(database)
    for n in range(int(count)):
        made = keys.create(f"{name}{n}", 60)
        assert made is not None
        say(made.text)
    database.close()


def revoke_keys(path: str) -> None:
    """Revoke every API key."""
    database = Database.open(path)
    keys = ApiKeys(database)
    for key in keys.all():
        keys.revoke(key.id)
    database.close()


COMMANDS = {
    command.__name__: command
    for command in (add_for_ever, add, take, spend, open_at_once, fill, make_keys, revoke_keys)
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
