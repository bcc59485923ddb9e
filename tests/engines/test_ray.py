"""`svc.bulk.ray` on Ray in local mode, over services that are really started."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from svc import limits
from tests.deploy.test_nginx import NGINX, configuration, free_port, running
from tests.e2e.serving import Server, stored
from tests.e2e.test_access import make_key
from tests.e2e.tls import write_certificate
from tests.engines.playing import Found
from tests.engines.programs import Program, example, forecast_of_map, refusals
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, reply_to

pytestmark = pytest.mark.engines("ray")
PROVIDER_S = 0.01
WAIT_S = 60.0


def slow(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    return Reply(reply_to(PREFERS_CATS, body), delay=PROVIDER_S)


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider(slow) as provider:
        yield provider


@pytest.fixture
def demo(folder: Path) -> Iterator[Server]:
    with Server(folder / "demo.db", "--demo") as server:
        yield server


def service(db: Path, provider: ScriptedProvider, *arguments: str) -> Server:
    settings = {"SVC_MODEL": "@own/m", "SVC_PROVIDER_OWN_URL": provider.url}
    return Server(db, *arguments, **settings)


def on_ray(scenario: str, folder: Path, **given: Any) -> Found:
    return started(scenario, folder, **given).found()


def started(scenario: str, folder: Path, **given: Any) -> Program:
    return Program("ray", scenario, folder, files=str(folder / "ray"), **given)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def actors(program: Program) -> set[int]:
    """The processes of the program's Ray that decide rows."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if words.startswith(b"ray::") and b"DecidingActor" in words:
                found.add(int(entry.name))
    return {pid for pid in found if program.pid in ancestors(pid)}


def ancestors(pid: int) -> set[int]:
    found = set()
    with contextlib.suppress(OSError):
        while pid > 1:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            pid = int(stat[1])
            found.add(pid)
    return found


def test_one_poisoned_row_in_ten_thousand_is_one_error_value(folder: Path, demo: Server) -> None:
    found = on_ray("poisoned", folder, url=demo.url, count=10_000, too_long=limits.STATE_CHARS + 1)
    assert found["rows"] == 10_000
    assert len(found["decisions"]) == 9_999
    assert list(found["errors"]) == ["5000"]
    assert found["errors"]["5000"].startswith("invalid_request: state")


def test_values_that_cannot_be_sent_are_error_values(folder: Path, demo: Server) -> None:
    found = on_ray("kinds", folder, url=demo.url)
    assert (found["rows"], len(found["decisions"])) == (40, 36)
    said = {row: error.partition(": column")[0] for row, error in found["errors"].items()}
    assert said == dict.fromkeys(["0", "1", "2", "6"], "invalid_row: state")


def test_what_python_cannot_read_is_an_error_value(folder: Path, demo: Server) -> None:
    found = on_ray("unreadable", folder, url=demo.url)
    assert found["text"][0] is None
    assert all(
        error.startswith("invalid_row: state") for error in [found["text"][1], *found["date"]]
    )


def test_the_schema_is_the_same_for_good_and_bad_rows_and_for_none(
    folder: Path, demo: Server
) -> None:
    found = on_ray("schemas", folder, url=demo.url)
    types = found["blocks"][0]
    assert {name: types[name] for name in found["expected"]} == found["expected"]
    assert all(block == types for block in [*found["blocks"], found["empty"]])
    assert {found["nulls"][name] for name in ("choice", "integer", "decision_id")} == {10}
    assert found["nulls"]["error"] == 20
    assert found["refused"]


def test_the_answers_are_those_of_the_client(folder: Path, demo: Server) -> None:
    assert on_ray("same_as_client", folder, url=demo.url) == {"differing": []}


def test_a_forecast_is_what_the_command_line_says_of_the_same_rows_and_asks_nothing(
    folder: Path, provider: ScriptedProvider
) -> None:
    count = 500
    with service(folder / "svc.db", provider) as server:
        found = on_ray("forecasts", folder, url=server.url, count=count)
        said = forecast_of_map(folder, server.url, count, missing=7)
    one_part, many = found["said"]
    assert one_part == many
    assert (many["rows"], many["sampled"], many["calls"]) == (count - 1, 100, 2 * (count - 1))
    assert f"about {many['state_chars']} characters each, by 100 of them" in said
    assert found["of nothing"] == 0
    assert provider.bodies == []


def test_a_worker_that_is_killed_three_times_costs_hardly_a_call(
    folder: Path, provider: ScriptedProvider
) -> None:
    rows, kills = 2_000, 3
    with service(folder / "svc.db", provider) as server:
        program = started("run", folder, url=server.url, count=rows, more={"debias": False})
        for number in range(1, kills + 1):
            until(lambda n=number: len(provider.bodies) > n * rows / (kills + 2))
            os.kill(min(actors(program)), signal.SIGKILL)
        found = program.found()
    assert (found["rows"], found["errors"]) == (rows, {})
    assert len(found["decisions"]) == rows
    assert rows <= len(provider.bodies) <= rows * 1.01


def test_a_service_that_is_killed_and_started_again_loses_no_row(
    folder: Path, provider: ScriptedProvider
) -> None:
    rows, db = 1_500, folder / "svc.db"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with service(db, provider, "--addr", address) as server:
        program = started("run", folder, url=server.url, count=rows, more={"debias": False})
        until(lambda: len(provider.bodies) > rows / 3)
        server.kill()
        time.sleep(3)
        with service(db, provider, "--addr", address):
            found = program.found()
    assert (found["rows"], found["errors"]) == (rows, {})
    assert set(found["decisions"]) <= set(stored(db))
    # What the killed one had under way, at most.
    assert len(provider.bodies) <= rows + 32


def test_rows_of_a_service_that_is_gone_are_answered_by_the_others(
    folder: Path, provider: ScriptedProvider
) -> None:
    rows, dbs = 1_500, [folder / f"{name}.db" for name in "abc"]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(service(db, provider)) for db in dbs]
        urls = [server.url for server in servers]
        program = started("run", folder, url=urls, count=rows, more={"debias": False})
        until(lambda: len(provider.bodies) > rows / 3)
        servers[0].kill()
        found = program.found()
    assert (found["rows"], found["errors"]) == (rows, {})
    counts = [len(stored(db)) for db in dbs]
    assert all(count > rows / 20 for count in counts)
    assert counts[0] < counts[1]


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
@pytest.mark.parametrize("instances", [2, 3])
def test_an_instance_behind_nginx_that_is_killed_loses_no_row(
    folder: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, instances: int
) -> None:
    # Two actors with eight threads: what is under way is at most 1% of the rows.
    rows, threads, port = 1_600, 8, free_port()
    # Addresses of this machine for which clients take the certificates of their environment.
    names = [f"127.0.0.{number}" for number in range(2, 2 + instances)]
    certificate = write_certificate(folder / "tls.pem", *names)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    dbs = [folder / f"{name}.db" for name in names]
    keys = [make_key(db, "bulk", "--rpm", "1000000")[1] for db in dbs]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(service(db, provider)) for db in dbs]
        by_name = {name: [server] for name, server in zip(names, servers, strict=True)}
        (folder / "nginx.conf").write_text(configuration(folder, port, by_name, "0.0.0.0"))
        stack.enter_context(running(folder, port))
        program = started(
            "run",
            folder,
            url=[f"https://{name}:{port}" for name in names],
            api_key=keys,
            count=rows,
            threads=threads,
            more={"debias": False},
        )
        until(lambda: len(provider.bodies) > rows / 6)
        servers[0].kill()
        found = program.found()
    assert (found["rows"], found["errors"]) == (rows, {})
    assert len(found["decisions"]) == rows
    kept = [stored(db) for db in dbs]
    assert all(len(one) > rows / 50 for one in kept)
    # Each answer is that of one instance, and all of them answer alike.
    answers = [[one[made] for one in kept if made in one] for made in found["decisions"]]
    assert {len(of_row) for of_row in answers} == {1}
    assert len({of_row[0] for of_row in answers}) == 1
    assert rows <= len(provider.bodies) <= rows * 1.01


def test_limits_are_waited_for_and_the_key_is_in_no_log(
    folder: Path, provider: ScriptedProvider
) -> None:
    db = folder / "svc.db"
    _, key = make_key(db, "bulk", "--rpm", "300")
    with service(db, provider) as server:
        found = on_ray_with_key(folder, server.url, key)
        refused = refusals(server.url, key)
    assert (found["rows"], found["errors"]) == (150, {})
    assert len(stored(db)) == 150
    assert refused > 0


def on_ray_with_key(folder: Path, url: str, key: str) -> Found:
    program = started("run", folder, url=url, api_key=key, count=150, more={"debias": False})
    found = program.found()
    logs = [path for path in (folder / "ray").rglob("*") if path.is_file()]
    assert len(logs) > 5
    shown = [path for path in logs if key.encode() in path.read_bytes()]
    assert (shown, key in program.words) == ([], False)
    return found


def test_a_second_run_asks_what_the_checkpoint_does_not_have(
    folder: Path, provider: ScriptedProvider
) -> None:
    with (
        service(folder / "a.db", provider) as first,
        service(folder / "b.db", provider) as second,
    ):
        checkpoint = str(folder / "checkpoint")
        found = on_ray(
            "checkpointed", folder, url=first.url, other=second.url, checkpoint=checkpoint
        )
    assert found["kept"] == 300
    assert len(found["second"]["decisions"]) == 500
    assert Counter(map(len, (stored(folder / "a.db"), stored(folder / "b.db")))) == {300: 1, 200: 1}


def test_the_example_on_the_page_runs(folder: Path, demo: Server) -> None:
    found = on_ray("page", folder, code=example("svc.bulk.ray", demo.url))
    assert (found["rows"], found["errors"]) == (50, {})
