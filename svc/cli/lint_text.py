"""Findings of lint as commands print them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from svc.phrases import printable
from svc.wording import Finding

_WIDTH = 100
_INDENT = "  "


def findings_text(findings: Sequence[Finding]) -> Iterator[str]:
    """The lines about some findings: where and what, why it hurts, what to write instead."""
    for one in findings:
        yield printable(f"{one.question} {one.where}: {one.what} [{one.code}]")
        yield from textwrap.wrap(
            f"{one.why} {one.instead}", _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
        )


def counted(findings: Sequence[Finding]) -> str:
    """`1 finding`, `2 findings`."""
    return f"{len(findings):,} finding{'' if len(findings) == 1 else 's'}"
