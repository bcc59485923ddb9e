"""How many files, and so connections, this process may have open."""

from __future__ import annotations

import resource

from svc import limits

# Files that are no caller's: two calls to providers for each thread, the database, the log.
OTHERS = limits.REQUEST_THREADS * limits.CALLS_PER_REQUEST_THREAD + 128


def room_for(connections: int) -> int:
    """Raise the limit of open files so far that `connections` fit; how many do.

    Where the system's limit is low, callers get half of it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHERS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return min(connections, max(wanted - OTHERS, wanted // 2))
