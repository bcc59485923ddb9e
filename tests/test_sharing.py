"""Every script forks: what is made before the fork is shared."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

HEAD = """
import os, signal, sys
from svc.sharing import Bell, FairLock, ProcessLock, WorkerLoads

def forked(run):
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    return child
"""


def run(script: str) -> str:
    """What the script prints; it is ended when it hangs."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_a_lock_is_held_by_one_process_at_a_time() -> None:
    script = """
import tempfile
lock, counted = ProcessLock(), tempfile.TemporaryFile()
file = counted.fileno()

def count():
    for _ in range(500):
        with lock:
            seen = int.from_bytes(os.pread(file, 8, 0))
            os.pwrite(file, (seen + 1).to_bytes(8), 0)

os.pwrite(file, (0).to_bytes(8), 0)
children = [forked(count) for _ in range(3)]
for child in children:
    os.waitpid(child, 0)
print(int.from_bytes(os.pread(file, 8, 0)))
"""
    assert run(script).split() == ["1500"]


def test_a_process_that_is_killed_holds_nobody_up() -> None:
    script = """
lock, (read, write) = FairLock(), os.pipe()

def hold():
    with lock:
        os.write(write, b"held")
        signal.pause()

holder = forked(hold)
os.read(read, 4)
os.kill(holder, signal.SIGKILL)
os.waitpid(holder, 0)
with lock:
    print("free")
"""
    assert run(script).split() == ["free"]


def test_who_waits_has_the_lock_before_who_has_just_had_it() -> None:
    script = """
import tempfile
lock, (read, write) = FairLock(), os.pipe()
noted = tempfile.TemporaryFile()

def have(name):
    os.read(read, 1)
    for _ in range(300):
        with lock:
            os.write(noted.fileno(), name)
            os.fsync(noted.fileno())  # as long as a transaction takes

children = [forked(lambda name=name: have(name)) for name in (b"a", b"b")]
os.write(write, b"go")
for child in children:
    os.waitpid(child, 0)
noted.seek(0)
print(noted.read().decode())
"""
    had = run(script).strip()
    assert (had.count("a"), had.count("b")) == (300, 300)
    # Without the gate it is a tenth of that: who has just had it wins nearly always.
    assert sum(one != other for one, other in pairwise(had)) > 100


def test_who_gives_way_rests_while_others_have_the_lock_as_well() -> None:
    script = """
from svc.sharing import Resting
now, slept = [100.0], []

def sleep(seconds):
    slept.append(round(seconds, 6))
    now[0] += seconds

lock = FairLock()
resting = Resting(lock, clock=lambda: now[0], sleep=sleep)

def hold(seconds):
    with resting:
        now[0] += seconds

def have():
    with lock:
        pass

def another():
    os.waitpid(forked(have), 0)

hold(0.1)
hold(0.1)  # nobody else had it
another()
hold(0.1)
hold(0.2)  # after a rest of three times as long
hold(9.0)  # after the longest rest; by its end nobody else has had it for a while
hold(0.1)
print(*slept)
"""
    assert run(script).split() == ["0.3", "0.5"]


def test_every_process_sees_what_the_others_have_to_do() -> None:
    script = """
import time
loads = WorkerLoads()
print(loads.least_of_others())

def busy(load):
    loads.publish(load)
    time.sleep(60)

def seen(load):
    while loads.least_of_others() != load:
        time.sleep(0.001)

children = [forked(lambda: busy(5))]
# Seen before the lesser load hides whether this one is there yet.
seen(5)
children.append(forked(lambda: busy(3)))
seen(3)
loads.publish(9)
os.kill(children[1], signal.SIGKILL)
os.waitpid(children[1], 0)
print(loads.least_of_others())
os.kill(children[0], signal.SIGKILL)
os.waitpid(children[0], 0)
print(loads.least_of_others())
"""
    assert run(script).split() == ["None", "5", "None"]


def test_the_row_of_a_process_that_is_gone_is_the_next_ones() -> None:
    script = """
loads = WorkerLoads()
for number in range(30):
    os.waitpid(forked(lambda: loads.publish(number)), 0)
loads.publish(1)
print(loads.least_of_others(), loads._own)
"""
    assert run(script).split() == ["None", "0"]


def test_two_locks_that_threads_of_two_processes_hold_crosswise_are_no_deadlock() -> None:
    """The thread that waits is not the one that holds, though its process is."""
    script = """
import threading
one, other = ProcessLock(), ProcessLock()
(read, write), (told, tell) = os.pipe(), os.pipe()

def cross(held, wanted, ready, partner):
    taken, passed = threading.Event(), []
    def hold():
        with held:
            os.write(ready, b"x")
            os.read(partner, 1)
            taken.set()
            waiting.join(0.5)
    def wait():
        taken.wait(30)
        with wanted:
            passed.append(True)
    waiting = threading.Thread(target=wait)
    holding = threading.Thread(target=hold)
    waiting.start(); holding.start(); holding.join(); waiting.join()
    print(len(passed), flush=True)

child = forked(lambda: cross(other, one, write, told))
cross(one, other, tell, read)
os.waitpid(child, 0)
"""
    assert run(script).count("1") == 2


def test_a_stopped_process_holds_others_up_for_a_moment_alone() -> None:
    script = """
import time
for lock in (ProcessLock(), FairLock()):
    read, write = os.pipe()

    def hold():
        with lock:
            os.write(write, b"held")
            time.sleep(60)

    holder = forked(hold)
    os.read(read, 4)
    os.kill(holder, signal.SIGSTOP)
    began = time.monotonic()
    with lock:
        waited = time.monotonic() - began
    _, status = os.waitpid(holder, 0)
    print(os.WTERMSIG(status) == signal.SIGKILL, 0.3 < waited < 5)
"""
    assert run(script).split() == ["True"] * 4


def test_a_process_that_takes_its_time_or_is_continued_soon_is_left_alone() -> None:
    script = """
import time
lock, (read, write) = ProcessLock(), os.pipe()

def hold():
    with lock:
        os.write(write, b"held")
        time.sleep(1.5)

holder = forked(hold)
os.read(read, 4)

def pause():
    for _ in range(3):
        os.kill(holder, signal.SIGSTOP)
        time.sleep(0.1)
        os.kill(holder, signal.SIGCONT)
        time.sleep(0.3)

pausing = forked(pause)
with lock:
    print(os.waitpid(holder, 0)[1])
os.waitpid(pausing, 0)
"""
    assert run(script).split() == ["0"]


def test_a_worker_that_has_fallen_silent_is_offered_nothing() -> None:
    script = """
import time
loads = WorkerLoads()

def say_once():
    loads.publish(1)
    time.sleep(60)

child = forked(say_once)
loads.publish(9)
while loads.least_of_others() is None:
    time.sleep(0.001)
began = time.monotonic()
while loads.least_of_others() is not None and time.monotonic() < began + 20:
    time.sleep(0.01)
print(1 < time.monotonic() - began < 10)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""
    assert run(script).split() == ["True"]


NAMED = """
import time
from svc.deadline import Deadline
from svc.errors import Timeout
from svc.sharing import NamedLocks
locks, (read, write) = NamedLocks(), os.pipe()
"""


def test_a_lock_of_one_name_is_held_by_one_thread_of_one_process_at_a_time() -> None:
    script = """
import tempfile, threading
counted = tempfile.TemporaryFile()
file = counted.fileno()
os.pwrite(file, (0).to_bytes(8), 0)

def count():
    for _ in range(100):
        with locks.hold(b"one name", Deadline(60)):
            seen = int.from_bytes(os.pread(file, 8, 0))
            os.pwrite(file, (seen + 1).to_bytes(8), 0)

def count_in_threads():
    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

children = [forked(count_in_threads) for _ in range(2)]
for child in children:
    os.waitpid(child, 0)
print(int.from_bytes(os.pread(file, 8, 0)))
"""
    assert run(NAMED + script).split() == ["600"]


HOLD = """
def hold():
    with locks.hold(b"one name", Deadline(60)):
        os.write(write, b"held")
        signal.pause()

holder = forked(hold)
os.read(read, 4)
"""


def test_a_killed_process_holds_no_name() -> None:
    script = """
def wait():
    with locks.hold(b"one name", Deadline(60)):
        os.write(write, b"got")

waiter = forked(wait)
os.kill(holder, signal.SIGKILL)
os.waitpid(holder, 0)
print(os.read(read, 3).decode())
os.waitpid(waiter, 0)
"""
    assert run(NAMED + HOLD + script).split() == ["got"]


def test_a_wait_for_a_name_ends_at_the_deadline_also_where_its_holder_is_stopped() -> None:
    script = """
os.kill(holder, signal.SIGSTOP)
try:
    with locks.hold(b"one name", Deadline(0.2)):
        print("held by two")
except Timeout:
    print("timeout")
with locks.hold(b"another name", Deadline(0.2)):
    print("another")
os.kill(holder, signal.SIGKILL)
os.waitpid(holder, 0)
"""
    assert run(NAMED + HOLD + script).split() == ["timeout", "another"]


def test_a_stopped_process_holds_a_name_for_a_moment_alone() -> None:
    script = """
import time
os.kill(holder, signal.SIGSTOP)
began = time.monotonic()
with locks.hold(b"one name", Deadline(60)):
    waited = time.monotonic() - began
_, status = os.waitpid(holder, 0)
print(os.WTERMSIG(status) == signal.SIGKILL, 0.3 < waited < 5)
"""
    assert run(NAMED + HOLD + script).split() == ["True"] * 2


def test_a_wait_for_another_thread_ends_at_the_deadline() -> None:
    script = """
with locks.hold(b"one name", Deadline(60)):
    try:
        with locks.hold(b"one name", Deadline(0.1)):
            print("held twice")
    except Timeout:
        print("timeout")
with locks.hold(b"one name", Deadline(0.1)):
    print("free")
"""
    assert run(NAMED + script).split() == ["timeout", "free"]


def test_a_bell_that_was_rung_in_another_process_wakes_once_however_often_it_was() -> None:
    script = """
bell = Bell()
print(bell.wait(0))
os.waitpid(forked(lambda: [bell.ring() for _ in range(100_000)]), 0)
print(bell.wait(5), bell.wait(0))
"""
    assert run(script) == "False\nTrue False\n"
