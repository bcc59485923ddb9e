"""A book of replies: which calls of a run were sent in batches, and what was replied to them.

It is a folder, in which every file is there whole or not at all:

    book.json             the name of the run, and what was known of its models when it began
    000003/               a block of rows
        0001.round        the batches of its first round, whose calls are all written by then
        0001-000.calls    the calls of a batch, until it has ended
        0001-000.json     what is known of it at the provider, until nothing of it is left there
        0001-000.replies  its results

The rows of a block are replayed until they want no further call. What they want, and the book does
not have, is the next round.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from svc.bulk.durable import own_folder, undamaged, whole, write_json
from svc.bulk.replay import Replay
from svc.bulk.sealing import UNSEALED, Sealing
from svc.bulk.wanted import BatchFile, Wanted
from svc.errors import Damaged, NotConfigured, SettingsError
from svc.jsontext import JsonObject
from svc.providers import BatchClient, Reply, Traits, as_text, from_text
from svc.records import Model

# The most rows of a block, and the calls of one: a batch of a provider. Where bytes of calls
# are known before, a block has about so many.
BLOCK_ROWS = 10_000
BLOCK_CALLS = 50_000
BLOCK_BYTES = 100_000_000

# The file with what is known of all of a run.
FACTS = "book.json"


class Book:
    """The replies of one run, and what was known of its models when it began."""

    def __init__(
        self,
        folder: Path,
        apis: Mapping[str, BatchClient],
        record: bytes,
        sealing: Sealing = UNSEALED,
    ) -> None:
        """`apis` are the Batch APIs of the run's providers by their names.

        `record` tells the run from others; calls and replies have this `sealing`.
        Raises `OSError` where the folder cannot be used.
        """
        self.folder, self.apis, self.sealing = folder, apis, sealing
        self._of = hashlib.sha256(record).hexdigest()
        self._replay: Replay | None = None
        own_folder(folder)
        self._facts = self._read()

    @property
    def run(self) -> str:
        """The name of the run, which no other has."""
        return str(self._facts["run"])

    @property
    def known(self) -> Mapping[str, Traits] | None:
        """The traits of its models by their ids; None while nobody has looked."""
        traits = self._facts.get("known")
        if traits is None:
            return None
        with undamaged(self.folder / FACTS):
            return {model: from_text(text) for model, text in traits.items()}

    def check(self) -> None:
        """Raise `SettingsError` where it is another run's.

        Raise `NotConfigured` where batches of it are at a provider that the run does not ask now.
        """
        if self._facts.get("of") != self._of:
            raise SettingsError(
                f"folder {str(self.folder)!r} belongs to another run, whose batches may be under "
                "way; --restart cancels them and starts again"
            )
        elsewhere = {one.provider for one in self.readable()[0]} - self.apis.keys()
        if elsewhere:
            raise NotConfigured(
                f"its batches are at provider {', '.join(sorted(elsewhere))}, to which its models "
                "do not lead with the present settings; with those of before it goes on"
            )

    @property
    def block_rows(self) -> int | None:
        """How many rows a block has, where that was kept."""
        return self._facts.get("block_rows")

    def know(self, known: Mapping[str, Traits], block_rows: int | None = None) -> None:
        """Keep the traits of the models, and how many rows a block has, for all of the run."""
        self._facts["known"] = {model: as_text(traits) for model, traits in known.items()}
        self._facts["block_rows"] = block_rows
        write_json(self.folder / FACTS, self._facts)

    def block(self, number: int) -> Block:
        """The block of rows with this number."""
        return Block(self, number)

    def blocks(self) -> list[Block]:
        """The blocks that were begun."""
        return [Block(self, int(path.name)) for path in sorted(self.folder.glob("[0-9]*"))]

    def readable(self) -> tuple[list[BatchFile], int]:
        """The batches of all blocks, and how many lists of batches are damaged."""
        found: list[BatchFile] = []
        damaged = 0
        for path in (path for block in self.blocks() for path in block.rounds):
            try:
                found += self.block(int(path.parent.name)).listed(path)
            except Damaged:
                damaged += 1
        return found, damaged

    def reply(self, model: Model, body: bytes) -> Reply:
        """The reply to a call of the row that is replayed. Raises `Pending`."""
        assert self._replay is not None
        return self._replay.reply(model, body)

    def opened(self, replay: Replay) -> None:
        """Give replies from this replay from now on."""
        self._replay = replay

    def remove(self) -> None:
        """Delete all of it, so that never a part of it is left under its name."""
        _remove(self.folder, self.folder.with_name(f"{self.folder.name}.deleted"))

    def _read(self) -> JsonObject:
        path = self.folder / FACTS
        if not path.exists():
            write_json(path, {"run": secrets.token_hex(8), "of": self._of})
        with undamaged(path):
            facts: JsonObject = json.loads(path.read_bytes())
            return {**facts, "run": str(facts["run"])}


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a run, with their rounds; numbers of blocks begin at 0."""

    book: Book
    number: int

    @property
    def folder(self) -> Path:
        return self.book.folder / f"{self.number:06}"

    @property
    def batches(self) -> list[BatchFile]:
        """The batches of all rounds so far, in their order. Raises `Damaged`."""
        return [one for path in self.rounds for one in self.listed(path)]

    def listed(self, path: Path) -> list[BatchFile]:
        """The batches of the round in this file. Raises `Damaged`."""
        with undamaged(path):
            listed = json.loads(path.read_bytes())
            sealing = self.book.sealing
            return [BatchFile(folder=self.folder, sealing=sealing, **one) for one in listed]

    @property
    def rounds(self) -> list[Path]:
        """The files of its rounds so far, in their order."""
        return sorted(self.folder.glob("*.round"))

    def remove(self) -> None:
        """Delete what is kept of rows that want no further reply, so that no part of it is left."""
        if self.folder.exists():
            _remove(self.folder, self.folder.with_name(f"deleted-{self.folder.name}"))

    @contextmanager
    def replay(self) -> Iterator[Replay]:
        """A replay of its rows; the calls that they want are the next round after this.

        Raises `Damaged`.
        """
        own_folder(self.folder)
        sealing = self.book.sealing
        with ExitStack() as stack:
            files = [stack.enter_context(one.replies.open("rb")) for one in self.batches]
            number = len(self.rounds) + 1
            name = f"svc-{self.book.run}-{self.number:06}"
            room = Wanted(self.folder, number, name, self.book.apis, sealing)
            wanted = stack.enter_context(room)
            with undamaged(self.folder):
                replay = Replay(files, wanted.add, sealing)
            self.book.opened(replay)
            yield replay
            listed = wanted.written()
            if listed:
                with whole(self.folder / f"{number:04}.round") as file:
                    file.write(json.dumps(listed).encode())


def _remove(folder: Path, deleted: Path) -> None:
    """Delete a folder under another name."""
    shutil.rmtree(deleted, ignore_errors=True)
    folder.rename(deleted)
    shutil.rmtree(deleted)


def blocks_of(rows: int, block_rows: int) -> Iterator[range]:
    """The numbers of the rows of each block, of which the last may have fewer."""
    for first in range(1, rows + 1, block_rows):
        yield range(first, min(first + block_rows, rows + 1))


def rows_of_block(calls: int) -> int:
    """How many rows a block has, where each makes about so many `calls`."""
    return max(1, min(BLOCK_ROWS, BLOCK_CALLS // max(1, calls)))


def rows_that_fit(rows: int, calls: int, bytes_of: Callable[[range], int], most: int) -> int:
    """How many of so many `rows` a block has, where each makes about so many `calls`.

    `bytes_of` gives the bytes that the calls of the rows with some numbers take. Those of no block
    take over `most`, but for one with a single row.
    """
    row_bytes = bytes_of(range(1, rows + 1)) // rows
    block_rows = max(1, min(rows_of_block(calls), BLOCK_BYTES // max(1, row_bytes)))
    while block_rows > 1 and max(map(bytes_of, blocks_of(rows, block_rows))) > most:
        block_rows //= 2
    return block_rows
