"""An example that does not do what its page says is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks
from tests.docs.session import Session

LINT = """curl -s http://127.0.0.1:7777/v1/lint -d '{
  "questions": {"late": {"type": "noul", "instructions": "Is the parcel late?"}}
}'
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(tmp_path_factory.mktemp("page")) as started:
        yield started


def block(language: str, text: str, above: str = "\n\n") -> Block:
    return Block("page.md", 1, language, text, above)


def test_what_is_printed_is_compared(session: Session) -> None:
    session.follow(block("bash", LINT), block("json", '{"findings": []}'))
    with pytest.raises(AssertionError):
        session.follow(block("bash", LINT), block("json", '{"findings": [1]}'))


def test_an_error_that_the_page_does_not_show_is_found(session: Session) -> None:
    with pytest.raises(AssertionError, match="invalid_json"):
        session.follow(block("bash", "curl -s http://127.0.0.1:7777/v1/lint -d nothing\n"), None)


def test_variables_and_files_stay_from_block_to_block(session: Session) -> None:
    session.follow(block("text", "a file\n", "\n\nIn `note.txt`:\n\n"), None)
    session.follow(block("bash", "name=note.txt\n"), None)
    session.follow(block("bash", "cat $name\n"), block("text", "a file\n"))
    session.follow(block("console", "$ cat $name\na file\n$ true\n"), None)


def test_what_a_program_prints_is_compared(session: Session) -> None:
    session.follow(block("python", "number = 7\n"), None)
    session.follow(block("python", "print(number)\n"), block("text", "7\n"))
    with pytest.raises(AssertionError):
        session.follow(block("python", "print(number)\n"), block("text", "8\n"))


def test_a_command_that_fails_is_found(tmp_path: Path) -> None:
    with Session(tmp_path) as session, pytest.raises(AssertionError, match="the shell ended"):
        session.follow(block("bash", "svc recipe show nothing\ntrue\n"), None)


def test_blocks_know_where_they_stand(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nA file `a.json`:\n\n```json\n{}\n```\n\n```bash\ntrue\n```\n")
    first, second = blocks(page)
    assert (first.language, first.line, first.file) == ("json", 5, "a.json")
    assert (second.place, second.file, second.text) == ("page.md:9", None, "true\n")
