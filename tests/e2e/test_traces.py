"""Traces of really started servers, sent by the real exporter to a collector."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from svc.cli.main import main
from svc.demo import DemoServer
from svc.server.keeper import TRACES
from tests.e2e.serving import ROOT, GunicornServer, Server, environment
from tests.e2e.test_jobs import KEY as MASTER_KEY
from tests.e2e.test_jobs import done, submitted
from tests.handshakes import endless_handshakes
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider, always, completion, error
from tests.telemetry.collector import Collector
from tests.web.models import decision, replying

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SERVER, CLIENT = 2, 3  # OTLP's numbers of kinds
STATE = "wombat-in-the-state"
KEY = "sk-tungsten-key-0123456789"
SECRETS = re.compile(rb"wombat|tungsten|quokka", re.IGNORECASE)


def ask(server: Server, body: Json, **headers: str) -> requests.Response:
    return requests.post(server.url + "/v1/decide", json=body, headers=headers, timeout=60)


def scripted(provider: ScriptedProvider) -> dict[str, str]:
    return {
        "SVC_MODEL": "@scripted/m",
        "SVC_PROVIDER_SCRIPTED_URL": provider.url,
        "SVC_PROVIDER_SCRIPTED_KEY": KEY,
    }


@pytest.mark.parametrize("kind", [Server, GunicornServer])
def test_a_decision_its_calls_and_its_commit_are_spans_of_the_callers_trace(
    db: Path, kind: Callable[..., Server]
) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        with kind(db, **scripted(provider), **collector.settings) as server:
            sent = f"00-{TRACE}-{PARENT}-01"
            answer = ask(server, decision(debias=True), traceparent=sent).json()
            decided, commit = (collector.spans(name, 1)[0] for name in ("decide", "commit"))
            calls = collector.spans("chat m", 2)
    assert (decided.trace, decided.parent, decided.kind) == (TRACE, PARENT, SERVER)
    assert {(one.trace, one.parent, one.kind) for one in (*calls, commit)} == {
        (TRACE, decided.id, CLIENT)
    }
    assert decided.attributes == {
        "svc.questions": 1,
        "svc.decision.id": answer["id"],
        "svc.project": "default",
        "svc.model": "@scripted/m",
        "svc.mode": "logprobs",
        "svc.config": answer["config"],
        "svc.cached": False,
        "svc.debiased": True,
        "svc.cost_usd": 0.0,
    }
    assert commit.attributes == {"db.system.name": "sqlite", "db.operation.name": "COMMIT"}
    assert calls[0].attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
    }
    assert not any(one.failed for one in (decided, commit, *calls))
    assert decided.began <= calls[0].began <= calls[0].ended <= commit.began
    assert commit.ended <= decided.ended
    told = sorted(request.headers["traceparent"] for request in provider.requests)
    assert told == sorted(f"00-{TRACE}-{one.id}-01" for one in calls)
    assert decided.resource["service.name"] == "svc"


def test_every_worker_sends_its_spans_and_those_of_its_last_requests(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        late = {**collector.settings, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
        named = {"OTEL_SERVICE_NAME": "tickets", "OTEL_RESOURCE_ATTRIBUTES": "team=support"}
        settings = {**scripted(provider), **late, **named}
        with Server(db, "--workers", "2", **settings) as server:
            ids = {ask(server, decision(n, debias=False)).json()["id"] for n in range(20)}
            assert collector.spans() == []
            assert server.stop() == 0
        spans = collector.spans("decide")
    assert {span.attributes["svc.decision.id"] for span in spans} == ids
    assert len({span.trace for span in spans}) == len(ids)
    assert {span.resource["service.name"] for span in spans} == {"tickets"}
    assert {span.resource["team"] for span in spans} == {"support"}


# Headers `traceparent` that say nothing.
BROKEN = (
    "",
    "nonsense",
    f"00-{'0' * 32}-{PARENT}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"ff-{TRACE}-{PARENT}-01",
    f"00-{TRACE.upper()}-{PARENT}-01",
    f"00-{TRACE}-{PARENT}-01-more",
    f"00-{TRACE}-{PARENT}-01, 00-{TRACE}-{PARENT}-01",
    "00-" + "a" * 4_000,
    f"00-{TRACE}-{PARENT}-01\xff",
)


def test_a_broken_traceparent_begins_a_trace_of_its_own(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        with Server(db, **scripted(provider), **collector.settings) as server:
            for n, broken in enumerate(BROKEN):
                sent = {"traceparent": broken, "tracestate": "=quokka," * 9, "baggage": "of=quokka"}
                assert ask(server, decision(n, debias=False), **sent).status_code == 200
            spans = collector.spans("decide", len(BROKEN))
            assert "quokka" not in server.log
            assert "traceparent" not in server.log
        assert {(span.trace == TRACE, span.parent) for span in spans} == {(False, "")}
        assert not SECRETS.search(b"".join(collector.bodies))
    sent_on = [request.headers["traceparent"] for request in provider.requests]
    assert sorted(one[:36] for one in sent_on) == sorted(f"00-{span.trace}-" for span in spans)
    for request in provider.requests:
        assert request.headers.keys().isdisjoint({"tracestate", "baggage"})


def test_a_caller_that_samples_nothing_is_followed(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        with Server(db, **scripted(provider), **collector.settings) as server:
            unsampled = f"00-{TRACE}-{PARENT}-00"
            assert ask(server, decision(), traceparent=unsampled).status_code == 200
            assert server.stop() == 0
        assert collector.spans() == []
    assert {one.headers["traceparent"][:36] for one in provider.requests} == {f"00-{TRACE}-"}
    assert {one.headers["traceparent"][-3:] for one in provider.requests} == {"-00"}


def test_failures_are_told_by_their_type_alone(db: Path) -> None:
    def echo(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        words = f"{headers['authorization']} said {body['messages'][-1]['content']}"
        return Reply(error(words, code=words, type=words), 400)

    with ScriptedProvider(echo) as provider, Collector() as collector:
        with Server(db, **scripted(provider), **collector.settings) as server:
            assert ask(server, decision(STATE, ref="quokka")).status_code == 502
            (decided,) = collector.spans("decide", 1)
            calls = collector.spans("chat", 2)
        assert not SECRETS.search(b"".join(collector.bodies))
    assert (decided.failed, decided.attributes["error.type"]) == (True, "model_error")
    assert all(one.failed for one in calls)
    assert "Refused" in {one.attributes["error.type"] for one in calls}


def test_no_word_of_a_request_or_an_answer_is_in_a_trace(db: Path) -> None:
    value = Reply(completion(json.dumps({"q1": {"value": "quokka", "confidence": 0.9}})))
    asked = {
        "state": STATE,
        "questions": {"quokka": {"type": "text", "instructions": "Which wombat?"}},
        "ref": "wombat",
        "tags": {"animal": "wombat"},
    }
    with ScriptedProvider(always(value)) as provider, Collector() as collector:
        with Server(db, **scripted(provider), **collector.settings) as server:
            assert ask(server, asked).status_code == 200
            assert collector.spans("decide", 1)
        assert not SECRETS.search(b"".join(collector.bodies))


def quick(server: Server) -> float:
    """The seconds of twenty decisions, each answered."""
    began = time.monotonic()
    for n in range(20):
        assert ask(server, decision(n, debias=False)).status_code == 200
    return time.monotonic() - began


@pytest.mark.parametrize("away", ["refuses", "silent", "fails"])
def test_a_collector_that_is_away_costs_decisions_nothing(db: Path, away: str) -> None:
    with (
        ScriptedProvider(replying()) as provider,
        Collector(lambda: 500) as failing,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        urls = {
            "refuses": "http://127.0.0.1:9",
            "silent": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "fails": failing.url,
        }
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": urls[away],
            "OTEL_BSP_SCHEDULE_DELAY": "20",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        }
        with Server(db, **scripted(provider), **settings) as server:
            assert quick(server) < 5
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < 10
            assert "127.0.0.1:9" not in server.log
            assert server.log.count("ERROR") == 0


def test_spans_that_are_lost_are_said_once_a_minute(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector(lambda: 400) as refusing:
        with Server(db, **scripted(provider), **refusing.settings) as server:
            for n in range(5):
                ask(server, decision(n, debias=False))
                time.sleep(0.1)
            assert server.stop() == 0
        assert server.log.count("of traces could not be sent") == 1
        assert "opentelemetry" not in server.log


def test_rows_of_jobs_are_traces_of_their_own(db: Path, demo: DemoServer) -> None:
    settings = {"SVC_PROVIDER_OWN_URL": demo.url, "SVC_MODEL": "@own/lexical", **MASTER_KEY}
    with Collector() as collector, Server(db, **settings, **collector.settings) as server:
        done(server, submitted(server, 10))
        spans = collector.spans("decide", 10)
        calls = collector.spans("chat lexical", 10)
    assert len({span.trace for span in spans}) == 10
    assert {call.parent for call in calls} == {span.id for span in spans}
    assert all(span.kind != SERVER for span in spans)


def test_what_a_challenger_is_asked_is_a_trace_of_its_own_linked_to_the_decision(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        with Server(db, **scripted(provider), **collector.settings) as server:
            assert ask(server, decision(STATE)).status_code == 200
            which = ("--project", "default", "--question", "animal", "--db", str(db))
            rival = ("--model", "@scripted/rival", "--share", "1")
            said = CliRunner().invoke(main, ["challenger", "set", *which, *rival])
            assert said.exit_code == 0, said.output
            for n in range(200):
                ask(server, decision(f"{STATE} {n}"))
                # The server looks once a second which challengers there are.
                if collector.spans("challenge"):
                    break
                time.sleep(0.05)
            assert server.stop() == 0
        live = {span.id: span for span in collector.spans("decide")}
        asked, calls = collector.spans("challenge", 1), collector.spans("chat rival", 1)
        assert not SECRETS.search(b"".join(collector.bodies))
    assert not all(span.failed for span in asked)
    for span in asked:
        (decided,) = span.links
        assert (span.parent, span.trace != live[decided].trace) == ("", True)
        assert span.kind not in (SERVER, CLIENT)
        # What was under way when the server stopped was cut.
        assert span.failed or span.attributes["svc.model"] == "@scripted/rival"
    assert {call.parent for call in calls} <= {span.id for span in asked}


# Hides what the extra installs, as if it had not been installed, and then serves.
WITHOUT_EXTRA = """
import sys
sys.modules["opentelemetry.sdk"] = None
from svc.cli.main import main
main()
"""


class ServerWithoutExtra(Server):
    def __init__(self, db: Path, *arguments: str, **settings: str) -> None:
        super().__init__(db, *arguments, **settings)
        self._command = [sys.executable, "-c", WITHOUT_EXTRA, *self._command[3:]]


def test_without_the_extra_one_line_says_so_and_the_service_runs(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        settings = {**scripted(provider), **collector.settings}
        with ServerWithoutExtra(db, "--workers", "2", **settings) as server:
            assert ask(server, decision()).status_code == 200
            assert server.stop(signal.SIGTERM) == 0
        assert collector.spans() == []
    assert server.log.count("no traces: ") == 1
    assert "pip install opentelemetry-sdk" in server.log


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "carrier-pigeon"}, "OTEL_TRACES_EXPORTER is 'carrier-pigeon'"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'smoke'"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "does not take a variable OTEL_... (ValueError)"),
    ],
)
def test_a_variable_that_cannot_be_used_is_one_line_and_the_service_runs(
    db: Path, variables: dict[str, str], words: str
) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        settings = {**scripted(provider), **collector.settings, **variables}
        with Server(db, **settings) as server:
            assert ask(server, decision()).status_code == 200
            assert server.stop() == 0
    assert server.log.count("no traces: ") == 1
    assert words in server.log


IMPORTED = """
import sys
from svc.bootstrap import build
from svc.settings import load
build(load({"SVC_DB": sys.argv[1]})).close()
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def test_nothing_of_opentelemetry_is_imported_while_traces_are_off(db: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-c", IMPORTED, str(db)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == "[]\n"


# What the SDK's exporters load from a file of their own, which processes that use them have mapped.
COMPILED = "google/_upb"


def has_opentelemetry(pid: int | None) -> bool:
    return COMPILED in Path(f"/proc/{pid}/maps").read_text()


def soon(found: Callable[[], int | None]) -> int:
    give_up_at = time.monotonic() + 30
    while (pid := found()) is None:
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
    return pid


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_a_process_of_its_own_sends_spans_and_gives_way_to_the_workers(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        settings = {**scripted(provider), **collector.settings}
        with Server(db, "--workers", "2", **settings) as server:
            ask(server, decision(debias=False))
            assert collector.spans("decide", 1)
            sender, workers = server.beside(TRACES), server.workers
            assert has_opentelemetry(sender)
            assert len(workers) == 2 and not any(map(has_opentelemetry, workers))
            assert os.getpriority(os.PRIO_PROCESS, sender or 0) > 0


def test_another_process_sends_spans_when_that_one_is_killed(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        with Server(db, **scripted(provider), **collector.settings) as server:
            ask(server, decision(0, debias=False))
            assert collector.spans("decide", 1)
            killed = soon(lambda: server.beside(TRACES))
            os.kill(killed, signal.SIGKILL)
            began = time.monotonic()
            ids = {ask(server, decision(n, debias=False)).json()["id"] for n in range(1, 20)}
            assert time.monotonic() - began < 10
            spans = collector.spans("decide", 20)
            assert ids < {span.attributes["svc.decision.id"] for span in spans}
            assert soon(lambda: server.beside(TRACES)) != killed


@pytest.mark.skipif(sys.platform != "linux", reason="a thread's time is seen by others there")
def test_a_process_whose_collector_keeps_it_busy_ends_and_begins_again(db: Path) -> None:
    with endless_handshakes() as port:
        flooding = f"https://127.0.0.1:{port}"
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": flooding, "OTEL_BSP_SCHEDULE_DELAY": "50"}
        with ScriptedProvider(replying()) as provider:
            with Server(db, **scripted(provider), **settings) as server:
                first = soon(lambda: server.beside(TRACES))
                assert ask(server, decision()).status_code == 200
                give_up_at = time.monotonic() + 60
                while f"{TRACES} does not run: what the collector answers" not in server.log:
                    assert time.monotonic() < give_up_at
                    assert ask(server, decision()).status_code == 200
                    time.sleep(0.2)
                # It has said so before it ends.
                soon(lambda: pid if (pid := server.beside(TRACES)) != first else None)


def test_decisions_do_not_wait_for_a_process_that_stands_still(db: Path) -> None:
    with ScriptedProvider(replying()) as provider, Collector() as collector:
        with Server(db, **scripted(provider), **collector.settings) as server:
            ask(server, decision(0, debias=False))
            assert collector.spans("decide", 1)
            os.kill(soon(lambda: server.beside(TRACES)), signal.SIGSTOP)
            assert quick(server) < 5


def test_nothing_runs_beside_the_workers_for_traces_that_are_off(db: Path) -> None:
    with Server(db) as server:
        # The other processes that the keeper starts with this one may have ended already.
        soon(lambda: server.keeper)
        time.sleep(1)
        assert server.beside(TRACES) is None
