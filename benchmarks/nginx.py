"""A provider that costs next to nothing: nginx, answering every call with one fixed completion."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import find, require, running, temporary_directory

_CONFIG = """
daemon off;
worker_processes {processes};
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  client_max_body_size 1m;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  default_type application/json;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location /v1/chat/completions {{ return 200 '{completion}'; }}
  }}
}}
"""


@contextmanager
def provider(completion: str, processes: int = 1) -> Iterator[str]:
    """The base URL of an nginx whose every chat completion is `completion`, of so many processes.

    Raises `NotRun` where nginx is absent.
    """
    require("nginx")
    with temporary_directory() as name:
        folder, port = Path(name), free_port()
        config = folder / "nginx.conf"
        quoted = completion.replace("\\", "\\\\").replace("'", "\\'")  # as nginx quotes a string
        settings = _CONFIG.format(folder=folder, port=port, completion=quoted, processes=processes)
        config.write_text(settings)
        command = [find("nginx") or "nginx", "-c", str(config), "-p", str(folder), "-e", "stderr"]
        with running(command, url=f"http://127.0.0.1:{port}") as server:
            yield f"{server.url}/v1"


def free_port() -> int:
    """A port that was free a moment ago, for servers that cannot choose one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
