"""Files of results beside an output, whose first line names the run that they belong to."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from svc.errors import SettingsError

RUN_SUFFIX = ".run.json"

# New results of lines that are asked again.
RETRIED_SUFFIX = ".retried"
# Results that wait for those of lines before them, and those of them that are asked again.
AHEAD_SUFFIX = ".ahead"
RETRIED_AHEAD_SUFFIX = RETRIED_SUFFIX + AHEAD_SUFFIX
_SUFFIXES = (RETRIED_SUFFIX, AHEAD_SUFFIX, RETRIED_AHEAD_SUFFIX)

# Files of results belong to who runs the command, who may not have made the output.
OWNER_ALONE = 0o600

_NUMBER = re.compile(rb'\{"line":([0-9]{1,18}),')


def head(path: str, suffix: str) -> bytes:
    """The first line of such a file, which names the run of the output at `path`."""
    run = hashlib.sha256(Path(path + RUN_SUFFIX).read_bytes()).hexdigest()
    return _beginning(suffix) + f'{run}"}}\n'.encode()


def check(path: str, suffix: str) -> None:
    """Raise `SettingsError` where such a file is not of the output at `path`, and `OSError`."""
    expected, first = head(path, suffix), b"\n"
    # Of a pipe nothing is read, which could take for ever.
    if os.path.isfile(path + suffix):
        with open(path + suffix, "rb") as file:
            first = file.readline(len(expected))
    # A killed process may have left a part of the line.
    if not expected.startswith(first):
        raise SettingsError(
            f"{path + suffix!r} does not hold results of this output; move it away, or delete it"
        )


def forget(path: str) -> None:
    """Delete such files of an output that was here before."""
    for suffix in _SUFFIXES:
        kept, beginning = Path(path + suffix), _beginning(suffix)
        if not kept.is_file():
            continue
        with kept.open("rb") as file:
            if file.read(len(beginning)) == beginning:
                kept.unlink()


def number_of(line: bytes) -> int:
    """The number of the line that a whole result is of, 0 where there is none."""
    found = _NUMBER.match(line)
    return int(found[1]) if found and is_object(line) else 0


def is_object(line: bytes) -> bool:
    """Whether a line ends as an object does, with nothing in it that no JSON has.

    After a power failure a block of the file may be missing, or filled with zeros.
    """
    return line.endswith(b"}\n") and b"\0" not in line


def _beginning(suffix: str) -> bytes:
    return f'{{"{suffix.removeprefix(".")}":"'.encode()
