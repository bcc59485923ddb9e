"""Many callers at once, each with a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests

CONNECTIONS = 16


def post_all(
    url: str, bodies: Sequence[dict[str, Any]], connections: int = CONNECTIONS
) -> list[dict[str, Any]]:
    """Post every body to `/v1/decide`; the responses, in the order of the bodies.

    Raises `AssertionError` for the first response that is no 200.
    """

    def share(first: int) -> list[dict[str, Any]]:
        with requests.Session() as session:
            return [_post(session, url, body) for body in bodies[first::connections]]

    with ThreadPoolExecutor(connections) as threads:
        shares = list(threads.map(share, range(connections)))
    return [shares[n % connections][n // connections] for n in range(len(bodies))]


def post_until_it_breaks(
    url: str, bodies: Sequence[dict[str, Any]], answered: Callable[[str], None]
) -> bool:
    """Post the bodies one by one and report each answer's id; whether the server went away."""
    with requests.Session() as session:
        for body in bodies:
            try:
                answered(_post(session, url, body)["id"])
            except requests.RequestException:
                return True
    return False


def _post(session: requests.Session, url: str, body: dict[str, Any]) -> dict[str, Any]:
    response = session.post(f"{url}/v1/decide", json=body, timeout=60)
    assert response.status_code == 200, response.text
    return dict(response.json())
