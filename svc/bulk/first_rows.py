"""The first rows of a job in batches, asked directly until it is known how its models are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from svc.bulk.answering import Settled
from svc.bulk.job_run import LONGEST_PAUSE_S, OUTAGE_PAUSE_S
from svc.errors import LASTING_FAULT, ApiError, NoAnswer, RateLimited

# So many rows are tried until one was answered by a model.
TRIED = 10


def ask_first(
    rows: Callable[[], Iterable[tuple[int, str]]],
    ask: Callable[[int, str], ApiError | Settled],
    learnt: Callable[[], bool],
    wait: Callable[[float], None],
) -> None:
    """Ask about rows one by one until a model is known, or a few rows could not tell.

    They cannot where they need no model, or where none can answer them as they are asked. Without
    this each row would find out by itself, in rounds of its own. `rows` gives those that are not
    settled; `ask` says how one was settled, or why no model answered it; `wait` waits for so many
    seconds while the models fail, and may raise.
    """
    pause_s, answered, failed = OUTAGE_PAUSE_S, 0, 0
    while answered < TRIED:
        # Those that failed are left for later, as it may be they that are at fault.
        tried = list(islice(rows(), failed, failed + TRIED))
        if not tried and not failed:
            return
        failed = failed if tried else 0
        for number, text in tried:
            outcome = ask(number, text)
            if isinstance(outcome, (Settled, NoAnswer, *LASTING_FAULT)):
                answered += 1
                if learnt():
                    return
                continue
            failed += 1
            rate_s = outcome.retry_after if isinstance(outcome, RateLimited) else 0.0
            wait(min(LONGEST_PAUSE_S, max(pause_s, rate_s)))
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
