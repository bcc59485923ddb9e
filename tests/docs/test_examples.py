"""Every example of the README and of docs/ is run, in the order of its page."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from svc.cli.main import COMMANDS, main
from tests.docs.pages import ENGINES, PAGES, PRINTED, ROOT, RUN, Block, blocks, requests
from tests.docs.session import Session

BLOCKS = {page.relative_to(ROOT).as_posix(): blocks(page) for page in PAGES}
WITH_EXAMPLES = [
    name for name, found in BLOCKS.items() if any(one.language in RUN for one in found)
]
NOT_RUN = [one for found in BLOCKS.values() for one in found if one.language == "sh"]


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    found = BLOCKS[page]
    with Session(tmp_path) as session:
        for block, below in zip(found, [*found[1:], None], strict=True):
            session.follow(block, below)


@pytest.mark.parametrize("page", BLOCKS)
def test_a_block_is_run_or_is_what_something_prints_or_is_a_file(page: str) -> None:
    before: Block | None = None
    for block in BLOCKS[page]:
        is_printed = before is not None and before.language in RUN and not block.above.strip()
        fits = block.language in (*RUN, ENGINES, "sh") or block.file is not None
        assert fits or (is_printed and block.language in PRINTED), block.place
        before = block


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.place)
def test_what_is_not_run_has_commands_and_options_that_there_are(block: Block) -> None:
    subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if "svc" in words and words[words.index("svc") + 1 :][:1] != []:
            _check(words[words.index("svc") + 1 :])
        if words[:1] == ["make"]:
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert words[1] in targets


def _check(words: list[str]) -> None:
    """Whether there are the command and the options; raises `AssertionError`."""
    name, *rest = words
    if name not in COMMANDS:
        return
    command = main.get_command(click.Context(main), name)
    while isinstance(command, click.Group):
        command = command.commands[rest.pop(0)]
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}
    options = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
    assert set(options) <= known | {"-h", "--help"}


def test_the_pages_send_requests_of_every_kind() -> None:
    assert {request.path for request in requests()} >= {"/v1/decide", "/v1/feedback"}
