"""Requests that schemathesis derives from the served document, right and wrong ones.

No server error, no status, header or media type that is not described, no answer that breaks its
schema, and no request that breaks its schema accepted.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.serving import Server, environment
from tests.e2e.test_access import make_key

pytestmark = pytest.mark.slow

CONFIG = Path(__file__).with_name("schemathesis.toml")
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
LIMIT_S = 400  # seconds, on a busy machine; it takes about 15


def examine(server: Server, folder: Path, *options: str) -> None:
    """Let schemathesis try everything that the server describes; it must find nothing."""
    found = subprocess.run(
        [SCHEMATHESIS, "--config-file", CONFIG, "run", f"{server.url}/openapi.json", *options],
        cwd=folder,  # it keeps notes there
        env=environment(NO_COLOR="1"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Traceback" not in server.log


def test_the_server_is_what_its_document_says(db: Path, tmp_path: Path) -> None:
    with Server(db, "--demo") as server:
        examine(server, tmp_path)


def test_it_is_so_with_keys_too(db: Path, tmp_path: Path) -> None:
    _, key = make_key(db, "ada", "--project", "shop")
    _, slow_key = make_key(db, "bob", "--project", "shop", "--rpm", "2")
    with Server(db, "--demo") as server:
        examine(server, tmp_path, "--phases", "examples")
        examine(server, tmp_path, "--phases", "examples", "-H", f"Authorization: Bearer {slow_key}")
        examine(server, tmp_path, "--phases", "fuzzing", "-H", f"Authorization: Bearer {key}")
        statuses = set(re.findall(r"path=/v1/\S* status=(\d+)", server.log))
    assert statuses >= {"200", "401", "403", "429"}
