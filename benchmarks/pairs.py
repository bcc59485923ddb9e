"""This tree and an earlier commit under the same load at the same time, burst about.

    python -m benchmarks.pairs 6ff0013                     # S1, S2 and S3
    python -m benchmarks.pairs HEAD~1 S2 --bursts 60

Both servers are up together and take turns every second, in an order that is drawn anew for each
pair, so that a machine whose speed wanders is met by both alike. Two ratios are printed for each
row, this tree over the commit, with an interval: decisions a second (above 1 is faster), and
processor time of a decision (below 1 is cheaper), which depends less on who else is busy.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from io import BytesIO
from pathlib import Path
from statistics import median

from benchmarks import decisions, nginx, wrk
from benchmarks.harness import (
    ROOT,
    Process,
    python_environment,
    require,
    run_program,
    running,
    temporary_directory,
)
from benchmarks.servers import serve_command
from benchmarks.throughput import Burst, burst

BODIES: dict[str, Callable[[], str]] = {
    "S1": lambda: decisions.body(debias=True).replace(wrk.UNIQUE, "2041"),
    "S2": lambda: decisions.body(debias=False),
    "S3": lambda: decisions.body(debias=True),
}
BURST_S = 1.0
WARM_UP_BURSTS = 2  # of each server, which count for nothing
RESAMPLES = 2000  # of the pairs, for the interval


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
    parser.add_argument("commit", help="what to compare with; anything that git can name")
    parser.add_argument("names", nargs="*", metavar="row", help=f"of {', '.join(BODIES)}")
    parser.add_argument("--bursts", type=int, default=40, help="of each server, a second each")
    given = parser.parse_args(arguments)
    require("nginx", "wrk")
    with temporary_directory() as folder, ExitStack() as stack:
        _unpack(given.commit, Path(folder) / "earlier")
        provider = stack.enter_context(nginx.provider(decisions.completion()))
        earlier, now = (
            stack.enter_context(_service(root, Path(folder) / f"{name}.db", provider))
            for name, root in (("earlier", Path(folder) / "earlier"), ("now", ROOT))
        )
        print(f"| row | decisions a second ÷ {given.commit} | processor time ÷ {given.commit} |")
        print("|---|---|---|")
        for name in given.names or BODIES:
            pairs = _bursts(now, earlier, BODIES[name](), given.bursts)
            rates = [ours.rate / theirs.rate for ours, theirs in pairs]
            costs = [ours.cost / theirs.cost for ours, theirs in pairs]
            print(f"| {name} | {_summary(rates)} | {_summary(costs)} |", flush=True)
    return 0


def _unpack(commit: str, folder: Path) -> None:
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tree:
        tree.extractall(folder, filter="data")


def _service(root: Path, database: Path, provider: str) -> AbstractContextManager[Process]:
    environment = {
        **python_environment(),
        "PYTHONPATH": str(root),
        "PYTHONSAFEPATH": "1",  # the code of `root`, wherever this runs
        "SVC_PROVIDER_BENCH_URL": provider,
    }
    return running(serve_command(database, "--model", f"@bench/{decisions.MODEL}"), environment)


def _bursts(now: Process, earlier: Process, body: str, count: int) -> list[tuple[Burst, Burst]]:
    for _ in range(WARM_UP_BURSTS):
        burst(now, body, BURST_S)
        burst(earlier, body, BURST_S)
    pairs = []
    for _ in range(count):
        done: dict[int, Burst] = {}
        for server in random.sample((now, earlier), 2):
            done[server.pid] = burst(server, body, BURST_S)
        pairs.append((done[now.pid], done[earlier.pid]))
    return pairs


def _summary(ratios: Sequence[float]) -> str:
    """The median and its 95% bootstrap interval."""
    draws = sorted(median(random.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    low, high = draws[RESAMPLES // 40], draws[-RESAMPLES // 40]
    return f"{median(ratios):.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    run_program(main)
