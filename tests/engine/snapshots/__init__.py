"""The prompts of every pin as text, so that no change of code alters a released one unnoticed.

A folder holds the snapshots of one pin, a file those of one group of cases (`cases.py`), and
`tests/engine/test_snapshots.py` builds each prompt anew and compares it with what is written.

A snapshot shows a whole prompt: messages, output limit and schema. The message that opens every
prompt stands once, at the top of the file. Values stand as JSON, members one below the other
where they are long. Long text stands line by line behind a `|`. In it a backslash is doubled, and
`\\r`, `\\u200b` or `\\x20` stand for what nobody could see: control characters and their like, and
a blank at the end of a line. Two different prompts never look alike.

For a new pin: add it to `svc.pins.PINS`, run `python -m tests.engine.snapshots` from the root of
the repository, and read the files that it wrote before they are committed. The command writes
only files that do not exist yet. To freeze something more, add a new group to `cases.py` rather
than a case to an old one, and run the command while the code still builds the released prompts.
A file of a released pin is never written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from svc import jsontext
from svc.engine.prompt import Image, Prompt, PromptInput, build
from svc.pins import PINS
from svc.providers.traits import Way
from svc.questions import TYPES, Question
from tests.engine.snapshots.cases import GROUPS, Body, Case, Variant

FOLDER = Path(__file__).parent
WIDTH = 120  # characters of JSON that still stand on one line
HEAD = "=== "  # begins the line above each prompt; no line of a prompt begins so
OPENING = "the message that opens every prompt below"


def prompt_of(pin: str, variant: Variant) -> Prompt:
    """What a pin shows a model; the one place that knows how a prompt is asked for."""
    case = variant.case
    material = PromptInput(
        pin=PINS[pin],
        questions=tuple(map(loaded, case.questions)),
        state_text=jsontext.as_text(case.state),
        earlier=earlier_of(case),
        images=tuple(Image(url, b"") for url in case.images),
        think=case.think,
    )
    way = Way.SCHEMA if variant.mode == "verbal" else Way.LINES
    return build(material, way, backwards=variant.order == "backwards")


def loaded(body: Body) -> Question:
    """The question that a request's body describes."""
    question: Question = TYPES[body["type"]].load(body)
    return question


def earlier_of(case: Case) -> tuple[tuple[str, str], ...]:
    """The questions of earlier stages with their answers in words."""
    asked = [(loaded(body), label) for body, label in case.earlier]
    return tuple((one.instructions, one.spoken(one.check_label(label))) for one, label in asked)


def snapshot(pin: str, variant: Variant) -> tuple[str, str]:
    """A whole prompt as it stands in a file: its first message, and everything else."""
    prompt = prompt_of(pin, variant)
    first, *others = prompt.messages
    rest = {"messages": others, "max_tokens": prompt.max_tokens, "schema": prompt.schema}
    return "\n".join(lines(first)), "\n".join(lines(rest))


def lines(value: Any) -> list[str]:
    """A JSON value in lines: long text behind bars, long objects and lists by their members."""
    short = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and ("\n" in value or len(value) > WIDTH):
        return [f"|{visible(line)}" for line in value.split("\n")]
    if len(short) <= WIDTH and "\\n" not in short:
        return [short]
    if isinstance(value, Mapping):
        return [line for key, one in value.items() for line in _member(json.dumps(key), lines(one))]
    return [line for one in value for line in _item(lines(one))]


def visible(line: str) -> str:
    """A line of text with everything spelt out that a reader could not see."""
    shown = "".join(_spelt(character) for character in line)
    return re.sub(r" \Z", r"\\x20", shown)


def _spelt(character: str) -> str:
    if character.isprintable() and character != "\\":
        return character
    return character.encode("unicode_escape").decode()


def _member(name: str, value: list[str]) -> list[str]:
    return [f"{name}: {value[0]}"] if len(value) == 1 else [f"{name}:", *map(_indented, value)]


def _item(value: list[str]) -> list[str]:
    return [f"- {value[0]}", *map(_indented, value[1:])]


def _indented(line: str) -> str:
    return line if line.startswith("|") else f"  {line}"  # text stays where it is easy to read


def place(folder: Path, pin: str, group: str) -> Path:
    """The file of a pin's group of cases."""
    return folder / pin / f"{group}.txt"


def recorded(file: Path) -> dict[str, str]:
    """The parts of a file by name: what opens its prompts, then each prompt."""
    _, *parts = re.split(rf"^{HEAD}(.*)\n", file.read_bytes().decode(), flags=re.MULTILINE)
    return {name: text.rstrip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


def written(pin: str, group: str) -> str:
    """What a file holds when it is new. Raises `ValueError` where prompts open differently."""
    found = [(one.name, *snapshot(pin, one)) for one in GROUPS[group]]
    (opening,) = {opening for _, opening, _ in found}
    parts = [(OPENING, opening), *((name, rest) for name, _, rest in found)]
    return "\n".join(f"{HEAD}{name}\n{text}\n" for name, text in parts)


def write_missing(folder: Path) -> Iterator[Path]:
    """Write the files that do not exist yet and yield each; what exists is left as it is."""
    for pin in PINS:
        for group in GROUPS:
            file = place(folder, pin, group)
            if file.exists():
                continue
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(written(pin, group).encode())
            yield file
