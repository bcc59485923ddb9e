"""The chaos run: a real server under load while everything around it fails.

    python -m tests.chaos [--seconds 240] [--seed N] [--masters 1]

One database lives through several lives of a server, on one worker and on two. In each life every
fault comes once, in random order; each ends with kills under load: of all processes, a worker, or
the master alone. Parts of the service are switched on by its commands, see `parts.py`: a budget, a
retention, challengers, hooks; each life ends in another month than it began. Then a project key
does its worst beside another one, on a server of their own. 1 when something did not hold.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

from tests.chaos import faults, hostile, report
from tests.chaos.run import MASTERS, SHORT_S, Run
from tests.chaos.verdict import judge
from tests.hostile.loads import ALLOWED_MIXED, MIXED, NEW, SLOW, STRANGERS

SECONDS = 240.0


def main() -> int:
    """Run, print what was seen; 1 when something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="about how long")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument(
        "--masters", type=int, default=MASTERS, help="kills of the master alone, in each life"
    )
    given = parser.parse_args()
    random.seed(given.seed)
    say(f"seed {given.seed}")
    with tempfile.TemporaryDirectory(prefix="svc-chaos-") as name:
        folder = Path(name, "disk")
        folder.mkdir()
        with faults.disk(folder) as real_disk:
            run = Run(
                folder, Path(name, "certificate.pem"), given.seconds, real_disk, given.masters
            )
            run.run()
            problems = list(judge(run.journal, run.db, run.parts, run.clock))
        load_s = hostile.SHORT_S if given.seconds < SHORT_S else hostile.LOAD_S
        with hostile.Keys(Path(name)) as keys:
            names = (MIXED, SLOW, NEW, ALLOWED_MIXED, STRANGERS)
            beside = [keys.beside(name, load_s) for name in names]
    problems += [problem for one in beside for problem in one.problems()]
    for line in (*report.lines(run, real_disk), *map(str, beside)):
        say(line)
    for problem in dict.fromkeys(problems or ["none"]):
        say(f"problem: {problem}")
    return int(bool(problems))


def say(line: str) -> None:
    """One line to standard output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)  # so that servers and the mount end either way
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
