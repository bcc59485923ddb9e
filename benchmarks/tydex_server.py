"""The other typed-decision server of S14, in a process of its own: `... <provider's base URL>`."""

from __future__ import annotations

import sys

from tydex.backends import LocalOpenAIBackend
from tydex.core import Tydex
from tydex.server import TydexHttpHandler, TydexHttpServer, TydexServer


class _Quiet(TydexHttpHandler):
    def log_message(self, *_: object) -> None:
        """A line for each request on the terminal would be work that ours does not do."""


def main(provider: str) -> None:
    """Serve on a port of the system's, and say where."""
    model = Tydex(LocalOpenAIBackend("m", provider), model="m")
    server = TydexHttpServer(("127.0.0.1", 0), _Quiet)
    server.daemon_threads = True
    server.tydex_server = TydexServer(model)
    sys.stdout.write(f"listening on http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
