"""What of the deployment can be tried without a machine to deploy to."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from svc.cli.main import main
from svc.metrics import Board, Metrics
from svc.providers import build_catalog
from svc.settings import load
from svc.usage import Counts, UsageBoard
from tests.e2e.serving import ROOT, Server
from tests.test_metrics import SURE, decided

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
UNIT = (DEPLOY / "svc@.service").read_text()


@pytest.fixture
def labels_of_metrics() -> dict[str, set[str]]:
    """The labels of each metric of a server that has done a bit of everything."""
    board, usage = Board(), UsageBoard()
    usage.open().add("m", Counts(calls=1, readings=1))
    metrics = Metrics(board, lambda: 1, usage.sums)
    metrics.decided(0.1, decided(SURE))
    samples = [
        sample
        for family in text_string_to_metric_families(metrics.render()[0])
        for sample in family.samples
    ]
    return {sample.name: set(sample.labels) for sample in samples}


def test_alerts_speak_of_metrics_that_there_are(labels_of_metrics: dict[str, set[str]]) -> None:
    assert set(re.findall(r"\bsvc_\w+", (DEPLOY / "alerts.yml").read_text())) <= set(
        labels_of_metrics
    )


def test_the_board_shows_metrics_and_labels_that_there_are(
    labels_of_metrics: dict[str, set[str]],
) -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) == len(set(expressions)) > 10
    for expression in expressions:
        names = set(re.findall(r"\bsvc_\w+", expression))
        assert names
        assert names <= set(labels_of_metrics)
        # Prometheus itself adds the instance.
        labels = {"instance"}.union(*(labels_of_metrics[name] for name in names))
        grouped = re.findall(r"by \(([^)]*)\)", expression)
        selected = re.findall(r"(\w+)=~", expression)
        assert {*selected, *(one for group in grouped for one in group.split(", "))} <= labels


def test_the_board_names_a_data_source_and_variables_that_it_has() -> None:
    text = (DEPLOY / "grafana.json").read_text()
    variables = {one["name"] for one in json.loads(text)["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)\b", text))
    assert used == variables == {"datasource", "instance", "project"}


def test_the_panels_of_the_board_do_not_overlap() -> None:
    places = [
        panel["gridPos"] for panel in json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    ]
    cells = [
        (place["x"] + x, place["y"] + y)
        for place in places
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_the_started_commands_have_the_options_they_are_given() -> None:
    served = json.loads(re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[-1])
    assert served[:2] == ["svc", "serve"]
    assert "ExecStart=/opt/svc/bin/svc serve --addr ${LISTEN}\n" in UNIT
    shown = CliRunner().invoke(main, ["serve", "--help"]).output
    assert all(word in shown for word in served if word.startswith("--"))


def test_the_image_takes_files_that_there_are() -> None:
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for name in (line[1:] for line in kept if line.startswith("!")):
        assert (ROOT / name).exists()
    assert re.search(r"^USER 10001$", DOCKERFILE, re.MULTILINE)


def test_the_compose_file_fits_the_image() -> None:
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    (service,) = composed["services"].values()
    built = DEPLOY / service["build"]["context"]
    assert (built / service["build"]["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    (port,), (volume,) = service["ports"], service["volumes"]
    assert port.startswith("127.0.0.1:")
    assert f"EXPOSE {port.rpartition(':')[2]}\n" in DOCKERFILE
    name, _, path = volume.partition(":")
    assert f"VOLUME {path}\n" in DOCKERFILE
    assert composed["volumes"].keys() == {name}
    # What the image starts is what compose starts.
    assert "command" not in service


def test_the_compose_file_takes_one_variable() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    (variable,) = set(re.findall(r"\$\{(\w+)", text))
    catalog = build_catalog(load({variable: "k"}))
    assert [name for name, provider in catalog.items() if provider.key] == ["openrouter"]


def test_the_health_check_of_the_image_knows_health_from_illness(tmp_path: Path) -> None:
    check = json.loads(re.findall(r'^ +CMD (\["python".*)$', DOCKERFILE, re.MULTILINE)[0])
    with Server(tmp_path / "svc.db", "--demo") as server:
        check[-1] = check[-1].replace("http://127.0.0.1:7777", server.url)
        # A proxy for calls to models is none for this.
        proxied = {**os.environ, "http_proxy": "http://127.0.0.1:9", "no_proxy": ""}
        healthy = subprocess.run(check, capture_output=True, check=False, env=proxied)
        server.kill()
        ill = subprocess.run(check, capture_output=True, check=False)
    assert (healthy.returncode, ill.returncode) == (0, 1)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_has_nothing_to_say_about_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "svc@acme.service"
    unit.write_text(UNIT.replace("/opt/svc/bin/svc", "/bin/true"))
    ended = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, str(unit) in ended.stderr) == (0, False)


def test_a_server_tells_systemd_when_it_is_ready(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.settimeout(30)
        notified.bind(str(tmp_path / "notify"))
        settings = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with Server(tmp_path / "svc.db", "--demo", **settings) as server:
            assert b"READY=1" in notified.recv(1_000)
            assert server.stop() == 0
