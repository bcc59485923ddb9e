"""Exit statuses of commands, beside 0, and 2 for wrong usage, which is click's own."""

from __future__ import annotations

# Something failed, or not everything was answered.
FAILED = 1
# After Ctrl-C: by custom 128 and the signal's number.
INTERRUPTED = 130
