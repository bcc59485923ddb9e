"""One item after the other in a terminal; what was said can be taken back."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Any

import click

from svc.cli.label_answers import Sayable
from svc.cli.label_desk import Desk, Item
from svc.cli.label_keys import Typed
from svc.cli.notices import coloured
from svc.phrases import printable

UNDO, SKIP, QUIT = "u", "s", "q"
_COMMANDS = {UNDO: "undo", SKIP: "skip", QUIT: "quit"}
# Stands before a command where any text is an answer.
_MARK = ":"
_NOTHING_YET = object()
_LINE_ENDS = ("\r", "\n")


@dataclass(slots=True)
class Turn:
    """An item, and what was said of it so far."""

    item: Item
    label: Any = _NOTHING_YET
    dealt: bool = False


class Session:
    """Shows items, takes answers, and has the desk save them."""

    def __init__(self, desk: Desk, typed: Typed) -> None:
        self._desk, self._typed = desk, typed
        self._past: list[Turn] = []
        self._back: list[Turn] = []
        self._colour = coloured()

    def run(self) -> None:
        """Until nothing is left, or somebody quits."""
        while (turn := self._next()) is not None:
            try:
                self._show(turn)
                said = self._said(turn)
            except EOFError:
                return
            if said == QUIT:
                return
            self._done(turn, said)
        self._say("Nothing is left to label.")

    def _next(self) -> Turn | None:
        if self._back:
            return self._back.pop()
        item = self._desk.next()
        return None if item is None else Turn(item)

    def _done(self, turn: Turn, said: Any) -> None:
        """Do what was said of an item: a command, or a list with the label."""
        if said == UNDO:
            self._back += [turn, self._past.pop()] if self._past else [turn]
            return
        if said != SKIP:
            (turn.label,) = said
            self._desk.label(turn.item, turn.label)
            self._tell(turn)
        elif not turn.dealt:
            self._desk.skip(turn.item)
        turn.dealt = True
        self._past.append(turn)

    def _tell(self, turn: Turn) -> None:
        sayable = Sayable(turn.item.asked)
        model = sayable.answered(self._desk.answer(turn.item))
        label = sayable.words(turn.label)
        self._dim(f"{printable(turn.item.name)}: you said {label}. The model: {model}.")

    def _show(self, turn: Turn) -> None:
        item, sayable = turn.item, Sayable(turn.item.asked)
        self._dim("─" * min(shutil.get_terminal_size().columns, 80))
        tags = "".join(f"  {printable(f'{name}: {value}')}" for name, value in item.tags.items())
        self._dim(f"{printable(item.name)}{tags}   {printable(self._progress())}")
        for line in item.text.expandtabs().splitlines():
            self._say(printable(line))
        self._say("")
        self._say(click.style(printable(item.asked.instructions), bold=True))
        for number, option in enumerate(sayable.options, 1):
            key = f"{number} {option.letter}".rstrip()
            self._say(
                f"  {key:>3}  {printable(option.name)}  "
                + click.style(printable(option.words), dim=True)
            )
        if item.shown is not None:
            self._say(f"The model says: {sayable.answered(item.shown)}.")
        if turn.label is not _NOTHING_YET:
            self._say(f"You said: {sayable.words(turn.label)}.")

    def _said(self, turn: Turn) -> Any:
        """A command, or a list with the label alone."""
        sayable = Sayable(turn.item.asked)
        if self._typed.single and sayable.by_key:
            return self._toggled(sayable, turn) if sayable.several else self._by_key(sayable)
        while True:
            self._prompt(sayable)
            line = self._typed.line()
            command = line.removeprefix(_MARK)
            # A value may look like a command, and an option may be called like one.
            is_said = line != command or (sayable.options and not sayable.named(line))
            if command in _COMMANDS and is_said:
                return command
            try:
                return [sayable.parsed(line)]
            except ValueError as error:
                self._say(f"{error}")

    def _by_key(self, sayable: Sayable) -> Any:
        self._prompt(sayable)
        while True:
            key = self._typed.key()
            if key in _COMMANDS:
                self._say("")
                return key
            option = sayable.by_letter(key)
            if option is not None:
                self._say(printable(option.name))
                return [option.label]

    def _toggled(self, sayable: Sayable, turn: Turn) -> Any:
        chosen = set() if turn.label is _NOTHING_YET else set(turn.label)
        self._prompt(sayable)
        while (key := self._typed.key()) not in _LINE_ENDS:
            option = sayable.by_letter(key)
            if key in _COMMANDS:
                return key
            if option is not None:
                chosen ^= {option.label}
                kept = [one.label for one in sayable.options if one.label in chosen]
                self._say(sayable.words(kept))
        return [[one.label for one in sayable.options if one.label in chosen]]

    def _prompt(self, sayable: Sayable) -> None:
        mark = "" if sayable.options else _MARK
        commands = ", ".join(f"{mark}{key} {name}" for key, name in _COMMANDS.items())
        self._dim(f"{_how(sayable, self._typed.single)}; {commands} > ", newline=False)

    def _progress(self) -> str:
        """`37 labelled, about 40 more until a promise at 0.95`."""
        labels = self._desk.labels
        since = labels - self._desk.progress["labels"]
        wanted = [one for one in self._desk.progress["thresholds"] if one["labels_needed"] != 0]
        if not wanted or wanted[0]["labels_needed"] is None:
            return f"{labels:,} labelled"
        more = max(1, wanted[0]["labels_needed"] - since)
        target = wanted[0]["target"]
        return f"{labels:,} labelled, about {more:,} more until a promise at {target}"

    def _dim(self, text: str, newline: bool = True) -> None:
        self._say(click.style(text, dim=True), newline)

    def _say(self, text: str, newline: bool = True) -> None:
        click.echo(text, nl=newline, color=self._colour)


def _how(sayable: Sayable, single: bool) -> str:
    """How to answer, in a few words."""
    if not sayable.options:
        return "the value, or - for none"
    if sayable.several:
        return "numbers, then Enter" if single and sayable.by_key else "numbers, or - for none"
    return "a key" if single and sayable.by_key else "a number, or a part of the name"
