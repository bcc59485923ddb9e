"""Thought that models write down before they answer."""

from __future__ import annotations

import re

_JSON_BEGINS = ("{", "[", "`")
_ENDS = "</think>"
_THOUGHT = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_BEGINS = re.compile(r"\s*<(think|thinking|reasoning)>")


def shows_thought(text: str) -> bool:
    """Whether a text holds a block of thought, or the end of one."""
    return _ENDS in text or _BEGINS.match(text) is not None


def without_thought(text: str) -> str:
    """The text after a block of thought; empty where the thought never ends."""
    if text.lstrip()[:1] in _JSON_BEGINS:
        # The mark may stand in a value of the JSON.
        return text
    # The beginning of the block may stand in the prompt's template.
    if _ENDS in text:
        return text.rpartition(_ENDS)[2]
    if thought := _THOUGHT.match(text):
        return text[thought.end() :]
    return "" if _BEGINS.match(text) else text
