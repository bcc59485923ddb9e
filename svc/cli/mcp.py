"""`svc mcp`: the service as a tool of MCP clients."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import click

from svc.cli.forwarding import Forwarder
from svc.cli.server import URL, Server, key_option
from svc.errors import SettingsError

# The oldest major version of the mcp package.
_OLDEST = 2
# The connections to the server that are kept open; a client's model seldom asks more at once.
CONNECTIONS = 16
_INSTALL = "svc mcp needs the mcp package, 2.0 or newer; install it with: pip install 'mcp>=2.0'"


EXAMPLES = """\b
Examples:
  svc mcp
  SVC_API_KEY=svc_... svc mcp --url https://decide.example.com
"""


@click.command("mcp", epilog=EXAMPLES)
@click.option("--url", metavar="URL", default=URL, show_default=True, help="The running server.")
@key_option
def command(url: str, api_key: str | None) -> None:
    """Give MCP clients a tool that asks a running server.

    The tool is decide, with the fields of POST /v1/decide. It speaks the Model Context Protocol
    over standard input and output, and needs the mcp package: pip install 'mcp>=2.0'. Clients
    start it themselves; an example of a client's configuration:

    \b
      {
        "mcpServers": {
          "svc": {
            "command": "svc",
            "args": ["mcp", "--url", "http://127.0.0.1:7777"],
            "env": {"SVC_API_KEY": "svc_..."}
          }
        }
      }
    """
    asker = Forwarder(Server(url, api_key, CONNECTIONS))
    if not _installed():
        raise SettingsError(_INSTALL)
    # The thread that reads the input would not notice a KeyboardInterrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    import_module("svc.cli.toolserver").serve(asker.decide)
    # The client is gone, so that nobody waits for the calls under way.
    os._exit(0)


def _installed() -> bool:
    """Whether the mcp package is installed; it is large, so that it is not imported to find out."""
    try:
        return int(version("mcp").partition(".")[0]) >= _OLDEST
    except PackageNotFoundError:
        return False
