"""When a failed delivery is tried again."""

from __future__ import annotations

from svc import limits

# The pauses after each failure, in seconds; the last one goes on. They are those that the
# specification Standard Webhooks gives as an example.
PAUSES_S = (5, 5 * 60, 30 * 60, 2 * 3_600, 5 * 3_600, 10 * 3_600)

# A pause is this part longer at most, so that what failed together does not come back together.
JITTER = 0.2

DAY_S = 86_400


def pause_s(attempts: int, first_at: float, now: float, chance: float) -> float | None:
    """The pause after so many failures, None where the event is to be given up.

    `first_at` is when it was sent first, in seconds as `now` is; `chance` is from 0 to 1.
    """
    usual = PAUSES_S[min(attempts, len(PAUSES_S)) - 1]
    pause = usual * (1 + JITTER * chance)
    return pause if now + pause <= first_at + limits.HOOK_TRIED_DAYS * DAY_S else None
