"""What a hostile client costs: processor, memory, and the patience of others.

    python -m benchmarks.hostile [bodies] [readers] [beside] [labels]

Without names all of them, about twenty minutes. `python -m tests.chaos --masters 20` has the kills.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import requests

from benchmarks.harness import most_memory_mb, processor_s, run_program, temporary_directory
from svc.app import create_app
from svc.bootstrap import build
from svc.settings import load
from tests.chaos import hostile
from tests.e2e.serving import Server
from tests.e2e.test_large_pages import PAGE, READERS, memory_mb, multiply
from tests.hostile.bodies import BODIES, images_beside_rules
from tests.hostile.loads import LOADS
from tests.scripted import ScriptedProvider
from tests.web.labelled import Labelled
from tests.web.models import decision, replying

# Seconds of each load, and in which readers that do not read are watched.
BESIDE_S, READERS_S = 8.0, 15.0

# The numbers of labels at which a label and the next decision are compared, by medians of so many.
FEW, MANY, PAIRS = 100, 5_000, 50
OPTIONS = [f"option {number}" for number in range(255)]


def bodies() -> Iterator[str]:
    """Each body to a server of its own."""
    with temporary_directory() as folder, ScriptedProvider(replying()) as provider:
        settings = {"SVC_PROVIDER_OWN_URL": provider.url, "SVC_MODEL": "@own/m"}
        all_bodies = {**BODIES, "images beside rules": images_beside_rules}
        for number, (name, make) in enumerate(all_bodies.items()):
            body = make().encode()
            with Server(Path(folder) / f"{number}.db", **settings) as server:
                server.post(decision())
                (worker,) = server.workers
                used_s, memory = processor_s(worker), memory_mb(worker)
                status = requests.post(f"{server.url}/v1/decide", body, timeout=60).status_code
                used_s = processor_s(worker) - used_s
                more = most_memory_mb(worker) - memory
            yield f"{name}: {used_s:.2f} s, {more:.0f} MB more, {status}"


def readers() -> Iterator[str]:
    """Callers who ask for long pages and do not read them."""
    with temporary_directory() as folder, ExitStack() as stack:
        db = Path(folder) / "svc.db"
        server = stack.enter_context(Server(db, "--demo"))
        server.post(decision("a state", debias=False)).raise_for_status()
        multiply(db)
        parts = urlsplit(server.url)
        for _ in range(READERS):
            caller = stack.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            caller.connect((parts.hostname, parts.port))
            caller.sendall(PAGE * 4)
        most, until = 0.0, time.monotonic() + READERS_S
        while time.monotonic() < until:
            most = max(most, sum(map(memory_mb, server.workers)))
            time.sleep(0.1)
    yield f"{READERS} readers that do not read: {most:.0f} MB in all"


def beside() -> Iterator[str]:
    """Another key, and `/health`, beside a key that sends each load on 20 connections."""
    with temporary_directory() as folder, hostile.Keys(Path(folder)) as keys:
        for name in LOADS:
            yield str(keys.beside(name, BESIDE_S))


def labels() -> Iterator[str]:
    """A label and the decision after it, with `coverage`, when there are few labels and many."""
    with temporary_directory() as folder, ScriptedProvider(replying()) as provider:
        environ = {"SVC_DB": f"{folder}/svc.db", "SVC_MODEL": "@own/m"}
        services = build(load({**environ, "SVC_PROVIDER_OWN_URL": provider.url}))
        client = Labelled(create_app(services).test_client())
        question = {
            "type": "choice",
            "instructions": "Which?",
            "options": dict.fromkeys(OPTIONS, ""),
            "coverage": 0.9,
        }
        times: list[float] = []
        for number in range(MANY + PAIRS):
            began = time.process_time()
            made = client.decide(f"state {number}", question, debias=False)
            client.feedback(made["id"], OPTIONS[number % len(OPTIONS)])
            times.append(time.process_time() - began)
        services.close()
    few, many = median(times[FEW:][:PAIRS]), median(times[MANY:])
    yield (
        f"label and decision: {few * 1000:.1f} ms of processor at {FEW} labels, "
        f"{many * 1000:.1f} ms at {MANY:,}: {many / few:.2f} times"
    )


MEASURES: dict[str, Callable[[], Iterator[str]]] = {
    measure.__name__: measure for measure in (bodies, readers, beside, labels)
}


def main() -> int:
    """Print what each measure finds."""
    for name in sys.argv[1:] or MEASURES:
        for line in MEASURES[name]():
            print(line, flush=True)
    print("the machine's load while this ran:", *os.getloadavg())
    return 0


if __name__ == "__main__":
    run_program(main)
