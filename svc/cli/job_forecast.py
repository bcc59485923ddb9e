"""What a job may take, told before it is handed in."""

from __future__ import annotations

from contextlib import closing

from svc import jsontext
from svc.bulk.sampling import sample
from svc.cli.dry_run import forecast, told
from svc.cli.job_body import NOT_FORECAST
from svc.cli.remote import Remote
from svc.cli.server import Server


def lines(body: bytes, remote: Remote) -> list[str]:
    """What the server says about a job of this body. Raises `SvcError`."""
    first, *rows = (jsontext.loads(line, "the line") for line in body.splitlines())
    shared = {name: given for name, given in first.items() if name not in NOT_FORECAST}
    drawn = sample((row["id"], row["state"]) for row in rows)
    with closing(Server(remote.url, remote.key)) as server:
        return told(forecast(server, shared, drawn, len(rows)), job=True)
