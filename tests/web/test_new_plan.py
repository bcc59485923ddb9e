"""A kind of plan that nobody but its own file knows is asked, described and on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from svc.cli.plans import ModelOptions, model_options
from tests.engine.backwards import known
from tests.web.conftest import Start
from tests.web.models import decision


@pytest.fixture(autouse=True)
def _known() -> Iterator[None]:
    with known():
        yield


@pytest.fixture
def client(start: Start) -> FlaskClient:
    return start().test_client()


def test_its_models_are_asked_as_it_says(client: FlaskClient) -> None:
    model = {"backwards": ["@scripted/first", "@scripted/last"]}
    response = client.post("/v1/decide", json={**decision(), "model": model})
    assert response.status_code == 200, response.text
    assert response.json["model"] == "@scripted/last"


def test_a_wrong_one_is_refused_with_its_place(client: FlaskClient) -> None:
    response = client.post("/v1/decide", json={**decision(), "model": {"backwards": "m"}})
    assert response.status_code == 422
    message = response.json["error"]["message"]
    assert message == "model.backwards: must be a list of model ids"


def test_it_is_described(client: FlaskClient) -> None:
    forms = client.get("/openapi.json").json["components"]["schemas"]["ModelPlan"]["anyOf"]
    (form,) = [form for form in forms if "backwards" in form.get("properties", {})]
    assert form["description"] == "A fallback chain from its last model to its first."


def test_it_is_an_option_of_the_command_line() -> None:
    @click.command()
    @model_options
    def command(asking: ModelOptions) -> None:
        click.echo(json.dumps(asking.fields["model"]))

    ended = CliRunner().invoke(command, ["--backwards", "a,b"])
    assert json.loads(ended.output) == {"backwards": ["a", "b"]}
    assert "A fallback chain from its end." in CliRunner().invoke(command, ["--help"]).output
