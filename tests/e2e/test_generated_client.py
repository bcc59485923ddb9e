"""A client that `openapi-python-client` generates from the document decides and gives feedback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.e2e.serving import Server

# Without its own formatting, and with a type for the one body that is not JSON.
SETTINGS = {
    "post_hooks": [],
    "content_type_overrides": {"application/x-ndjson": "application/octet-stream"},
}
TICKET = "I was charged twice and want a refund of the payment."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("generated") / "svc.db", "--demo") as server:
        yield server


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    return server.get("/openapi.json").json()


@pytest.fixture(scope="module")
def package(document: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the generated package, which can be imported; any warning is a failure."""
    folder = tmp_path_factory.mktemp("generated_from_openapi")
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    made = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning"),
            *("--path", folder / "openapi.json", "--config", folder / "settings.json"),
            *("--output-path", folder / "generated", "--meta", "none"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    yield folder / "generated"
    sys.path.remove(str(folder))


@pytest.fixture
def client(server: Server, package: Path) -> Iterator[Any]:
    with import_module("generated").Client(base_url=server.url) as client:
        yield client


def route(name: str) -> ModuleType:
    return import_module(f"generated.api.default.{name}")


def test_every_route_is_there(document: Any, package: Path) -> None:
    operations = [one for path in document["paths"].values() for one in path.values()]
    made = {path.stem for path in (package / "api" / "default").glob("*.py")} - {"__init__"}
    assert made == {operation["operationId"] for operation in operations}


def test_it_decides_gives_feedback_and_reads_the_report(client: Any) -> None:
    models = import_module("generated.models")
    questions = models.DecisionRequestQuestions.from_dict(
        {
            "team": {
                "type": "choice",
                "instructions": "Which team?",
                "options": {"billing": "charged, payment, refund", "tech": "crashes, errors"},
            },
            "refund": {"type": "boolean", "instructions": "Is a refund wanted?"},
        }
    )
    assert isinstance(questions["team"], models.ChoiceQuestion)
    request = models.DecisionRequest(state=TICKET, questions=questions)

    decision = route("decide").sync(client=client, body=request)
    assert isinstance(decision, models.DecisionResponse), decision
    team, refund = decision.answers["team"], decision.answers["refund"]
    assert isinstance(team, models.ChoiceAnswer)
    assert team.choice == "billing"
    assert team.probabilities["billing"] == team.confidence
    assert isinstance(refund, models.NoulAnswer)
    assert 0 <= refund.noul <= 1

    label = models.FeedbackRequest(decision_id=decision.id, question="team", label="billing")
    labelled = route("feedback").sync(client=client, body=label)
    assert isinstance(labelled, models.FeedbackResponse), labelled
    assert (labelled.labels, labelled.calibrated) == (1, False)

    report = route("calibration").sync(client=client, question="team")
    assert report.labels == 1
    assert report.to_dict()["before"]["accuracy"] == 1.0

    stored = route("decision").sync(client=client, decision_id=decision.id)
    assert isinstance(stored, models.StoredDecision)
    assert isinstance(stored.answers["team"], models.ChoiceAnswer)


def test_it_reads_errors(client: Any) -> None:
    models = import_module("generated.models")
    label = models.FeedbackRequest(decision_id="dec_1", question="team", label="billing")
    refused = route("feedback").sync_detailed(client=client, body=label)
    assert refused.status_code == 404
    assert refused.parsed.error.type_ == models.ErrorErrorType.NOT_FOUND
