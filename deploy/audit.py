"""Say what a report of pip-audit means, which comes as JSON on standard input.

    pip-audit --require-hashes --disable-pip -r deploy/requirements.lock -f json | audit.py

The exit status is 0 when every package was looked up and has no known advisory, 1 when one has, and
2 when the advisories could not be had, for all packages or for some.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> int:
    """Print the lines and return the status."""
    try:
        packages: list[dict[str, Any]] = json.load(sys.stdin)["dependencies"]
    except (ValueError, KeyError, TypeError):
        say("not checked: the data of advisories could not be had from here")
        return 2
    known = [
        f"{package['name']}: {one['id']}"
        for package in packages
        for one in package.get("vulns", ())
    ]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    for line in known:
        say(line)
    if skipped:
        say(f"not checked, their data could not be had: {', '.join(skipped)}")
    if known:
        return 1
    if skipped or not packages:
        return 2
    say(f"no known advisory for any of {len(packages)} packages")
    return 0


def say(line: str) -> None:
    """One line to standard output."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
