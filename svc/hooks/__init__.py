"""Hooks: what happens to a project is told to URLs of its operators, signed and in order.

`noticing.py` finds out from the database what happened, `delivering.py` sends it, and
`process.py`, which the server enters directly, does both in a process beside the workers.
"""

from __future__ import annotations

from svc.hooks.signing import new_secret
from svc.hooks.targets import RefusedTarget, Target, addresses, parsed

__all__ = ["RefusedTarget", "Target", "addresses", "new_secret", "parsed"]
