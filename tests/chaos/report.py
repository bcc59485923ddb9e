"""What a run was like, in lines to read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.journal import BROKEN, Journal, Outcome
from tests.chaos.run import Run


def lines(run: Run, real_disk: bool) -> Iterator[str]:
    """Counts, latencies, recoveries, and what the server held at rest."""
    journal = run.journal
    answered = sum(len(one.answers) for one in journal.asked.values())
    disk = "of its own" if real_disk else "shared: no mount allowed, so file-size limits alone"
    yield f"{len(run.footings)} lives, {answered:,} decisions answered; file system {disk}"
    yield from _outcomes(journal.outcomes)
    yield from _recoveries(journal)
    if run.gone_s:
        times = len(run.gone_s)
        yield f"the master killed {times} times: gone within {max(run.gone_s):.2f} s, port free"
    yield from (part.line() for part in run.parts)
    for workers, before, after in run.footings:
        yield (
            f"at rest on {workers}: threads {before.threads} then {after.threads}, "
            f"files {before.files} then {after.files}, "
            f"memory {before.memory_mb:.0f} then {after.memory_mb:.0f} MB"
        )


def _outcomes(outcomes: Sequence[Outcome]) -> Iterator[str]:
    counts: Counter[tuple[str, int, str]] = Counter()
    longest: dict[tuple[str, int, str], float] = defaultdict(float)
    for one in outcomes:
        kind = (one.what, one.status, one.type)
        counts[kind] += 1
        longest[kind] = max(longest[kind], one.ended - one.began)
    for kind in sorted(counts):
        what, status, error = kind
        shown = "broken" if status == BROKEN else status
        yield f"  {what:9}{shown:>7} {error:22}{counts[kind]:8,}  longest {longest[kind]:6.2f} s"


def _recoveries(journal: Journal) -> Iterator[str]:
    found: dict[str, list[float]] = defaultdict(list)
    for window in journal.windows:
        found[window.name].append(window.recovery_s)
    for name, seconds in sorted(found.items()):
        times = f"{len(seconds)} times"
        yield f"  {name:22}{times:>10}, answered again within {max(seconds):.2f} s"
