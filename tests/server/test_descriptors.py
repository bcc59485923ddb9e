from __future__ import annotations

import resource

from svc.server import descriptors


def test_the_limit_of_files_is_raised_as_far_as_needed() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        assert descriptors.allow_connections(100) == 100
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (
            100 + descriptors.RESERVED_FILES,
            hard,
        )
        assert descriptors.allow_connections(1) == 1
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (
            100 + descriptors.RESERVED_FILES,
            hard,
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
