"""Exit statuses of commands, beside 0, and 2 for wrong usage, which is click's own."""

from __future__ import annotations

# Something failed, or not everything was answered.
FAILED = 1
# The usual status after Ctrl-C, which is 128 plus the signal's number.
INTERRUPTED = 130
