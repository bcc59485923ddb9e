"""The README's picture of the dashboard: `python -m tests.browser.picture` takes it anew."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from svc.client import Choice, Client
from tests.browser.chromium import Browser
from tests.e2e.serving import ROOT, Server
from tests.preferring import PreferringModel, user_text
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import reply_to

PICTURE = ROOT / "docs/dashboard.png"
WIDTH = 1200  # pixels
TOP = 336  # below the choice of project and question
HEIGHT = 1072
LABELS = 600
TEAM = Choice(
    "Which team should handle this ticket?",
    {"billing": "Payments and refunds", "technical": "Errors and bugs", "account": "Logins"},
    escape=False,
)
# How sure the model is of an answer, and how often it is right then: less often than it thinks.
SURE = ((0.995, 0.995), (0.98, 0.98), (0.95, 0.9), (0.85, 0.7), (0.7, 0.5))


def main() -> None:
    """Seed a server, open its Calibration page, and keep the picture."""
    with TemporaryDirectory() as folder, ScriptedProvider(_obeying) as provider:
        settings = {
            "SVC_PROVIDER_OPENAI_URL": provider.url,
            "SVC_MODEL": "@openai/gpt-4.1-mini",
            "OPENAI_API_KEY": "none",
        }
        with Server(Path(folder, "svc.db"), **settings) as server, Browser() as browser:
            _label(Client(server.url, project="support"))
            browser.open(server.url, "calibration?project=support&question=team", width=WIDTH)
            browser.settled()
            size = {"x": 0, "y": TOP, "width": WIDTH, "height": HEIGHT, "scale": 1}
            taken = browser.cdp("Page.captureScreenshot", clip=size, captureBeyondViewport=True)
            PICTURE.write_bytes(base64.b64decode(taken["data"]))


def _label(client: Client) -> None:
    drawn = random.Random(5)
    teams = list(TEAM.options)
    for number in range(LABELS):
        p, right = drawn.choice(SURE)
        said = drawn.choice(teams)
        truth = said if drawn.random() < right else drawn.choice([t for t in teams if t != said])
        decision = client.decide(f"{said}={p}; {number}", team=TEAM, more={"debias": False})
        decision.feedback(team=truth)


def _obeying(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    """A model that says what the state tells it to, such as `billing=0.9; 17`."""
    text = user_text(body)
    said = next(team for team in TEAM.options if f"{team}=" in text)
    p = float(text.partition(f"{said}=")[2].partition(";")[0])
    others = {team: (1 - p) / 2 for team in TEAM.options if team != said}
    return Reply(reply_to(PreferringModel({said: p, **others}), body))


if __name__ == "__main__":
    main()
