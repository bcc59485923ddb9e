"""The MCP server with the one tool `decide`; the only file that needs the `mcp` package."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from svc import __version__
from svc.cli.forwarding import NoAnswer
from svc.jsontext import JsonObject
from svc.openapi import decision_request, decision_response
from svc.questions import TYPES

DECIDE = "decide"
_ABOUT = (
    "Answer typed questions about a piece of input (`state`) with calibrated probabilities. The "
    f"types of question are {', '.join(TYPES)}; the schema says what each of them takes."
)

Decide = Callable[[JsonObject], str]


def serve(decide: Decide) -> None:
    """Serve the tool over standard input and output until the input ends."""
    anyio.run(_serve, _server(decide))


def _server(decide: Decide) -> Server[Any]:
    tool = types.Tool(
        name=DECIDE,
        title="Decide",
        description=_ABOUT,
        input_schema=decision_request(),
        output_schema=decision_response(),
    )

    async def tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def call(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name != DECIDE:
            return _failed(f"There is no such tool; the only one is {DECIDE}.")
        ask = partial(decide, params.arguments or {})
        try:
            text = await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
        except NoAnswer as error:
            return _failed(str(error))
        try:
            # Parsed here, since not every number that a server writes is one to the library.
            value = json.loads(text)
            result = types.CallToolResult(content=[_text(text)], structured_content=value)
            result.model_dump_json()
        except (ValueError, RecursionError):
            return _failed(
                "The server answered with JSON that is nested too deeply, or has a number of over "
                "4,300 digits; see --url."
            )
        return result

    return Server("svc", version=__version__, on_list_tools=tools, on_call_tool=call)


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _failed(why: str) -> types.CallToolResult:
    """An error that the client's model reads."""
    return types.CallToolResult(content=[_text(why)], is_error=True)
