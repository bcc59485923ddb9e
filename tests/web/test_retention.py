"""Once decisions are deleted for their age, all that was told of them is told of what is left."""

from __future__ import annotations

import time

import pytest
from flask import Flask

from svc.store import Retentions, Sweeping
from tests.scripted import Json
from tests.web.conftest import Start
from tests.web.labelled import Labelled, obeying
from tests.web.models import ANIMAL

COVERED = {**ANIMAL, "coverage": 0.9}
OF_QUESTION = "project=default&question=q"
REPORTS = {
    "/v1/audit": "",
    "/v1/export": "",
    "/v1/activity": "last=day",
    "/v1/projects": "",
    "/v1/questions": "",
    "/v1/calibration": OF_QUESTION,
    "/v1/drift": OF_QUESTION,
    "/v1/rates": OF_QUESTION,
    "/v1/review": f"{OF_QUESTION}&reviewer=ada",
    "/v1/review/disagreements": OF_QUESTION,
}


@pytest.fixture
def app(start: Start) -> Flask:
    return start(obeying)


def sweep(app: Flask) -> None:
    """As the server does three days from now."""
    database = app.extensions["svc"].database
    Retentions(database).set("default", 2)
    sweeping = Sweeping(database, lambda: time.time() + 3 * 86_400)
    while sweeping.decisions("default"):
        pass


def told(app: Flask, path: str) -> Json:
    answer = app.test_client().get(f"{path}?{REPORTS[path]}")
    assert answer.status_code == 200, answer.text
    return dict(answer.get_json()) if answer.is_json else {}


def test_every_report_goes_on_and_calibrators_stay(app: Flask) -> None:
    labelled = Labelled(app.test_client())
    taught = labelled.teach(60)
    assert taught["calibrated"]
    before = labelled.decide("cat=0.9", COVERED)["answers"]["q"]
    assert (before["calibrated"], before["guaranteed"]) == (True, True)
    weeks = told(app, "/v1/drift")["weeks"]
    (project,) = told(app, "/v1/projects")["projects"]
    told(app, "/v1/review")
    sweep(app)
    reports = {path: told(app, path) for path in REPORTS}
    assert reports["/v1/audit"]["entries"] == []
    assert reports["/v1/drift"]["weeks"] == weeks
    (left,) = reports["/v1/projects"]["projects"]
    assert (left["decisions"], left["labels"]) == (project["decisions"], 0)
    assert 0 < left["last_seen"] <= project["last_seen"]
    calibration = reports["/v1/calibration"]
    assert calibration["labels"] == 0
    assert calibration["calibrator"] is not None
    assert (reports["/v1/rates"]["labels"], reports["/v1/rates"]["decisions"]) == (0, 0)
    assert reports["/v1/review"]["items"] == []
    after = labelled.decide("cat=0.9", COVERED)["answers"]["q"]
    assert (after["calibrated"], after["guaranteed"]) == (True, False)


def test_a_calibrator_stays_until_there_are_enough_labels_again(app: Flask) -> None:
    labelled = Labelled(app.test_client())
    labelled.teach(60)
    sweep(app)
    again = labelled.teach(5)
    assert (again["labels"], again["calibrated"]) == (5, True)
    learner = app.extensions["svc"].learner
    places = app.extensions["svc"].labels.stale(10)
    assert [learner.fit(place) for place in places] == [True]
    assert app.extensions["svc"].labels.stale(10) == []
    for path in REPORTS:
        told(app, path)


def test_an_answer_out_of_memory_is_not_older_than_its_decision_may_be(app: Flask) -> None:
    labelled = Labelled(app.test_client())
    labelled.decide("cat=0.9")
    assert labelled.decide("cat=0.9")["cached"]
    Retentions(app.extensions["svc"].database).set("default", 2)
    # Another era begins with it.
    assert not labelled.decide("cat=0.9")["cached"]
    assert labelled.decide("cat=0.9")["cached"]
