"""What callers send cannot forge a line of the log."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.serving import Server
from tests.web.models import decision

FORGED = "forged status=500"


def send(server: Server, head: bytes) -> None:
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 20) as sock:
        sock.sendall(head + b"\r\nConnection: close\r\n\r\n")
        while sock.recv(65_536):
            pass


@pytest.mark.parametrize("format_", ["text", "json"])
def test_no_part_of_a_request_makes_a_line_of_its_own(db: Path, format_: str) -> None:
    with Server(db, "--demo", SVC_LOG=format_, SVC_LOG_LEVEL="debug") as server:
        send(server, b"GET /a%0aINFO%20forged%20status=500%0d%1b[31m HTTP/1.1\r\nHost: localhost")
        send(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\nx-request-id: a\rforged")
        send(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a\x85forged")
        send(server, b"FORGED\xe2\x80\xa8 /health HTTP/1.1\r\nHost: localhost")
        for model in (f"@demo/a\n{FORGED}", f"@a\r\n{FORGED}/b", f"a/b\u2028{FORGED}"):
            assert server.post(decision(model=model)).status_code in (422, 502)
        server.post(decision(project=f"a\n{FORGED}"))
        assert server.stop() == 0
    lines = server.log.removeprefix("listening on " + server.url + "\n").split("\n")
    if format_ == "text":
        told, lines = lines[:3], lines[3:]
        assert [line.partition(":")[0] for line in told] == ["dashboard", "model", "keys"]
    assert lines.pop() == ""
    assert len(lines) > 8
    for line in lines:
        assert line.isprintable()
        if format_ == "json":
            json.loads(line)
        else:
            assert line[4] == "-" and line[23] == "Z"
