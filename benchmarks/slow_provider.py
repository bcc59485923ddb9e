"""A provider that takes its time: `python -m benchmarks.slow_provider <milliseconds> <questions>`.

One asyncio loop, so that several hundred calls can wait in it at once. It answers every POST with
the completion for one or two questions of `benchmarks.decisions`.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.decisions import completion
from benchmarks.harness import running

_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)
_BACKLOG = 4096


@contextmanager
def slow_provider(milliseconds: float, questions: int = 2) -> Iterator[str]:
    """The base URL of a provider, in a process of its own, that answers after `milliseconds`."""
    arguments = [str(milliseconds), str(questions)]
    command = [sys.executable, "-m", "benchmarks.slow_provider", *arguments]
    with running(command) as server:
        yield f"{server.url}/v1"


async def _serve(delay_s: float, questions: int) -> None:
    payload = completion(questions).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}"
    answer = head.encode() + b"\r\n\r\n" + payload

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(request)
                await reader.readexactly(int(length[1]) if length else 0)
                await asyncio.sleep(delay_s)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the caller has gone
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=_BACKLOG)
    host, port = server.sockets[0].getsockname()
    print(f"listening on http://{host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]) / 1000, int(sys.argv[2])))
