"""Every script forks: the line is made before the fork."""

from __future__ import annotations

import subprocess
import sys

HEAD = """
import os, signal, threading, time
from svc.telemetry import Line

line, stop = Line(), threading.Event()

def forked(run):
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    return child
"""


def run(script: str) -> list[str]:
    """The words that the script prints; it is ended when it hangs."""
    command = [sys.executable, "-c", HEAD + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


def test_blocks_of_several_processes_arrive_whole_and_once() -> None:
    script = """
def write(number):
    line.open()
    for n in range(200):
        while not line.send([(number, n, "x" * 100)] * 30):
            time.sleep(0.001)

children = [forked(lambda n=n: write(n)) for n in range(3)]
came = {}
def read():
    for block in line.blocks(stop):
        assert len(set(block)) == 1 and len(block) == 30
        came.setdefault(block[0][0], []).append(block[0][1])
reading = threading.Thread(target=read)
reading.start()
for child in children:
    os.waitpid(child, 0)
stop.set()
reading.join()
print(came == {n: list(range(200)) for n in range(3)})
"""
    assert run(script) == ["True"]


def test_a_line_that_nobody_reads_takes_no_more_and_never_waits() -> None:
    script = """
block, sent = [("x" * 1_000,)] * 20, 0
began = time.monotonic()
while line.send(block):
    sent += 1
print(0 < sent < 1_000, time.monotonic() - began < 5)
stop.set()
print(len(list(line.blocks(stop))) == sent)
"""
    assert run(script) == ["True"] * 3


def test_another_reader_goes_on_where_a_killed_one_stopped() -> None:
    script = """
read, write = os.pipe()
def first():
    for block in line.blocks(stop):
        os.write(write, b"1")

reader = forked(first)
line.send([(1,)])
os.read(read, 1)
os.kill(reader, signal.SIGKILL)
os.waitpid(reader, 0)
print(line.send([(2,)]), line.send([(3,)]))
stop.set()
print(*(block[0][0] for block in line.blocks(stop)))
"""
    assert run(script) == ["True", "True", "2", "3"]


def test_the_reader_ends_when_it_is_told_to_and_the_last_writer_has_ended() -> None:
    script = """
read, write = os.pipe()
told, tell = os.pipe()
def late():
    line.open()
    os.write(write, b"1")
    os.read(told, 1)
    line.send([("last",)])
    # Killed: it says nothing of its end.
    os.kill(os.getpid(), signal.SIGKILL)

child = forked(late)
os.read(read, 1)
stop.set()
came = []
reading = threading.Thread(target=lambda: came.extend(line.blocks(stop)))
reading.start()
reading.join(1)
print(reading.is_alive(), came)
os.write(tell, b"1")
os.waitpid(child, 0)
reading.join(30)
print(reading.is_alive(), came[0][0][0])
"""
    assert run(script) == ["True", "[]", "False", "last"]


def test_a_block_that_never_has_room_is_refused() -> None:
    script = """
for block in ([("x" * 10_000_000,)], [(object(),)]):
    try:
        line.send(block)
    except (OSError, ValueError) as error:
        print(type(error).__name__)
"""
    assert run(script) == ["OSError", "ValueError"]
