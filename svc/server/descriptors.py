"""How many files, and so connections, this process may have open."""

from __future__ import annotations

import resource

from svc import limits

# Files that belong to no connection of a caller: two calls to providers for each thread, the
# database, the log.
RESERVED_FILES = limits.REQUEST_THREADS * limits.CALLS_PER_REQUEST_THREAD + 128


def allow_connections(wanted: int) -> int:
    """Raise the limit of open files as far as `wanted` connections need; how many may be open.

    Where the system's limit is low, callers get half of it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + RESERVED_FILES
    if hard != resource.RLIM_INFINITY:
        files = min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return min(wanted, max(files - RESERVED_FILES, files // 2))
