"""Real models, a service in front of them, and how it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import Server
from tests.real import servers

DECIDE_S = 130.0  # seconds for a decision: the request's own deadline is 120
NOBODY = "http://127.0.0.1:9/v1"  # a provider at which nobody listens


@dataclass(frozen=True)
class Service:
    """A running service in front of every real model."""

    server: Server

    def decide(self, **body: Any) -> tuple[int, dict[str, Any]]:
        """The status and the body of a decision."""
        response = self.server.post(body, timeout=DECIDE_S)
        return response.status_code, response.json()

    def answer(self, **body: Any) -> dict[str, Any]:
        """The response to a decision that has to succeed."""
        status, response = self.decide(**body)
        assert status == 200, response
        return response

    def failure(self, **body: Any) -> str:
        """The message of a decision that has to fail at the model."""
        status, response = self.decide(**body)
        assert (status, response["error"]["type"]) == (502, "model_error"), response
        message: str = response["error"]["message"]
        return message


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service in front of them all; every server ends with the tests."""
    folder: Path = tmp_path_factory.mktemp("real")
    with (
        servers.smollm2(folder) as smollm2,
        servers.gemma(folder) as gemma,
        servers.sparrow(folder) as sparrow,
        servers.gateway(folder, smollm2) as gateway,
        Server(
            folder / "svc.db",
            SVC_PROVIDER_SMOL_URL=smollm2,
            SVC_PROVIDER_GEMMA_URL=gemma,
            SVC_PROVIDER_SPARROW_URL=sparrow,
            SVC_PROVIDER_SPARROW_KIND="systemone",
            SVC_PROVIDER_GATEWAY_URL=gateway,
            SVC_PROVIDER_GATEWAY_KEY=servers.KEY,
            SVC_PROVIDER_NOBODY_URL=NOBODY,
            SVC_CACHE_SIZE="0",
        ) as server,
    ):
        yield Service(server)
