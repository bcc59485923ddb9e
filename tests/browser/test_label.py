"""The page on which a reviewer labels decisions by keys, with texts of a file that stays there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Browser
from tests.browser.seeding import HOSTILE
from tests.browser.test_reading import _COLOURS, _WIDE, TEXTS, contrast, network
from tests.e2e.serving import Server
from tests.labelling import (
    MADE_OF_TWO,
    MARK,
    NAMES,
    NOTE_FILES,
    NOTES,
    TEAM,
    UNFIT,
    Desk,
    seeded,
    spreadsheet,
    tickets,
)

pytestmark = pytest.mark.browser

TICKETS = 30
QUESTIONS = {
    "team": TEAM,
    "urgent": {"type": "noul", "instructions": "Does it have to be handled today?"},
    "mood": {"type": "score", "instructions": "How angry?", "levels": ["calm", "cross", "furious"]},
    "topics": {"type": "multi", "instructions": "About what?", "options": {"a": "A", "b": "B"}},
    "amount": {"type": "number", "instructions": "Which amount?", "nullable": True, "min": 0},
    "product": {"type": "text", "instructions": "Which product?"},
    "one": {
        "type": "choice",
        "instructions": "Which of many?",
        "options": {f"option {n}": "" for n in range(20)},
    },
}
# Milliseconds from a key to the next item, on a machine that does other things too.
SOON_MS = 1_000
_WATCH = """window.delays = [];
  addEventListener("keydown", () => {
    const [began, before] = [performance.now(), document.querySelector(".label-text")];
    const look = () => {
      const now = document.querySelector(".label-text");
      if (now && now !== before) delays.push(performance.now() - began);
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, true)"""
_CLOSING = """const event = new Event("beforeunload", { cancelable: true });
  return !window.dispatchEvent(event)"""
_TEXTS_BY_RECORD = """const [name, content] = arguments;
  return readTable(new File([content], name)).then((table) => {
    const records = table.records.map((_, at) => ({ line: at + 1, id: `dec_${at + 1}` }));
    const { texts } = textsOf(table, { records }, "", table.columns[0]);
    return records.map(({ id }) => texts.get(id) ?? null);
  })"""
_ELSEWHERE = """new BroadcastChannel("svc-labelled").postMessage(
  JSON.stringify([arguments[0], arguments[1]]))"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    db = tmp_path_factory.mktemp("label") / "svc.db"
    with Server(db, "--demo") as started:
        yield started, db


@pytest.fixture
def desk(server: tuple[Server, Path], tmp_path: Path) -> Desk:
    """A project of the test's own."""
    return seeded(*server, TICKETS, QUESTIONS, project=tmp_path.name)


@pytest.fixture
def file(desk: Desk, tmp_path: Path) -> Path:
    return spreadsheet(tmp_path / "tickets.csv", desk.texts)


def visit(browser: Browser, desk: Desk, question: str = "team", **look: Any) -> None:
    query = {"project": desk.project, "question": question, "reviewer": "ada"}
    browser.open(desk.server.url, f"label?{urlencode(query)}", **look)


def choose(browser: Browser, *paths: Path) -> None:
    browser.wait("input[type=file]").send_keys("\n".join(map(str, paths)))


def begin(browser: Browser, *paths: Path) -> None:
    choose(browser, *paths)
    browser.wait(".label-files .note")
    browser.wait("button", "Start").click()
    browser.wait(".label-text")


def ref(browser: Browser) -> str:
    """The ref of the item that is shown."""
    return browser.wait("article p.note").text


def text(browser: Browser) -> str:
    return str(browser.run("return document.querySelector('.label-text').textContent"))


def say(browser: Browser, *keys: str) -> str:
    """Press keys that label the item; its ref."""
    labelled = ref(browser)
    browser.press(*keys)
    browser.wait(".label-last", f"{labelled}: you said")
    return labelled


def saved(browser: Browser) -> None:
    browser.wait(".label-saving", "All saved")


def test_twenty_of_thirty_are_labelled_by_keys(browser: Browser, desk: Desk, file: Path) -> None:
    visit(browser, desk)
    begin(browser, file)
    given = {}
    for number in range(20):
        if number == 10:
            saved(browser)
            browser.reload()
            begin(browser, file)
        assert text(browser) == desk.texts[ref(browser)]
        given[say(browser, str(number % 4 + 1))] = NAMES[number % 4]
    saved(browser)
    browser.wait(".label-progress", "20 labelled")
    assert len(given) == 20 and desk.labels() == given


def test_the_next_item_is_there_at_once(browser: Browser, desk: Desk, file: Path) -> None:
    visit(browser, desk)
    begin(browser, file)
    browser.run(_WATCH)
    for _ in range(10):
        say(browser, "1")
    delays = browser.run("return delays")
    assert len(delays) == 10 and max(delays) < SOON_MS


def test_undo_replaces_a_label_and_skip_gives_an_item_back(
    browser: Browser, desk: Desk, file: Path
) -> None:
    visit(browser, desk)
    begin(browser, file)
    first = say(browser, "1")
    second = ref(browser)
    browser.press("u")
    browser.wait("article", "You said: account.")
    assert ref(browser) == first
    assert browser.wait("[aria-pressed=true]").text.endswith("Login, password and profile")
    say(browser, "3")
    assert ref(browser) == second
    browser.press("s")
    third = ref(browser)
    browser.press("u")
    assert ref(browser) == second
    browser.wait("button", "Keep").click()
    assert ref(browser) == third
    saved(browser)
    assert desk.labels() == {first: "technical"}
    browser.wait(".label-progress", "1 labelled")


def test_each_item_is_labelled_in_the_wording_with_which_it_was_handed_out(
    browser: Browser, desk: Desk, tmp_path: Path
) -> None:
    visit(browser, desk, "mood")
    begin(browser, spreadsheet(tmp_path / "tickets.csv", {**desk.texts, "T-new": "A new text"}))
    mood = QUESTIONS["mood"]
    turned = {"mood": {**mood, "instructions": "How calm?", "levels": mood["levels"][::-1]}}
    body = {"state": "A new text", "questions": turned, "project": desk.project, "ref": "T-new"}
    assert desk.server.post(body).status_code == 200
    labels = {say(browser, key_of(browser, "furious")): 2 for _ in range(20)}
    saved(browser)
    assert say(browser, key_of(browser, "furious")) == "T-new"
    saved(browser)
    assert desk.labels("mood") == {**labels, "T-new": 0}
    browser.press("u")
    browser.wait("h2", "How calm?")
    browser.press("u")
    browser.wait("h2", "How angry?")
    assert browser.wait("[aria-pressed=true]").text.endswith("furious level 2")


def key_of(browser: Browser, name: str) -> str:
    """The digit of an option that is shown."""
    names = [button.text for button in browser.all(".label-list strong")]
    return str(names.index(name) + 1)


@pytest.mark.parametrize(
    ("question", "keys", "truth"),
    [
        ("urgent", ("y",), True),
        ("urgent", ("2",), False),
        ("mood", ("3",), 2),
        ("topics", ("1", "2", "1", Keys.ENTER), ["b"]),
        ("topics", (Keys.ENTER,), []),
        ("amount", ("12.5", Keys.ENTER), 12.5),
        ("amount", (Keys.ENTER,), None),
        ("product", ("a lamp", Keys.ENTER), "a lamp"),
        ("one", ("/", "17", Keys.ENTER), "option 17"),
    ],
)
def test_every_type_of_question_is_answered_by_keys(
    browser: Browser, desk: Desk, file: Path, question: str, keys: tuple[str, ...], truth: Any
) -> None:
    visit(browser, desk, question)
    begin(browser, file)
    labelled = say(browser, *keys)
    saved(browser)
    assert desk.labels(question) == {labelled: truth}


def test_a_value_out_of_its_bounds_is_told(browser: Browser, desk: Desk, file: Path) -> None:
    visit(browser, desk, "amount")
    begin(browser, file)
    browser.press("-1", Keys.ENTER)
    browser.wait(".label-trouble", "not a number within the bounds")
    browser.press(Keys.ESCAPE)
    browser.press("s")
    saved(browser)
    assert desk.labels("amount") == {}


def test_the_models_answer_is_hidden_until_the_label_is_given(
    browser: Browser, desk: Desk, file: Path
) -> None:
    visit(browser, desk)
    begin(browser, file)
    assert not browser.find("main", "The model")
    say(browser, "1")
    browser.wait(".label-last", "The model: ")
    visit(browser, desk)
    choose(browser, file)
    browser.wait("input[name=shown]").click()
    browser.wait("button", "Start").click()
    browser.wait("article", "The model says: ")


@pytest.mark.parametrize("kind", ["semicolons", "tabs", "named", "lines", "mapped"])
def test_files_of_many_kinds_are_read(
    browser: Browser, desk: Desk, tmp_path: Path, kind: str
) -> None:
    path, more = tmp_path / "tickets.jsonl", []
    if kind == "semicolons":
        path = spreadsheet(tmp_path / "tickets.csv", desk.texts, ";")
    elif kind == "tabs":
        path = spreadsheet(tmp_path / "tickets.tsv", desk.texts, "\t", ("Ref", "Message"))
    elif kind == "named":
        path = spreadsheet(tmp_path / "tickets.csv", desk.texts, head=("number", "words"))
    elif kind == "lines":
        rows = [{"text": text, "id": ref} for ref, text in desk.texts.items()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("".join(json.dumps(text) + "\n" for text in desk.texts.values()))
        more = [mapped(desk, tmp_path / "answers.jsonl")]
    visit(browser, desk)
    choose(browser, path, *more)
    if kind == "named":
        browser.wait("select[name=naming]").send_keys("number")
        browser.wait("select[name=reading]").send_keys("words")
    browser.wait(".label-files .note", "30 records")
    browser.wait("button", "Start").click()
    browser.wait(".label-text")
    for key in "123":
        assert text(browser) == desk.texts[ref(browser)]
        say(browser, key)


@pytest.mark.parametrize(("name", "content"), NOTE_FILES)
def test_a_record_has_the_number_that_svc_map_gives_it(
    browser: Browser, desk: Desk, name: str, content: str
) -> None:
    visit(browser, desk)
    browser.wait("input[type=file]")
    found = browser.run(_TEXTS_BY_RECORD, name, content)
    assert tuple(text or "" for text in found[-len(NOTES) :]) == NOTES
    # The empty first line of the files that are called blank is a record of its own.
    assert len(found) == len(NOTES) + name.startswith("blank")


def test_columns_and_values_of_a_hostile_file_are_read_as_they_stand(
    browser: Browser, desk: Desk
) -> None:
    """A column may be called as what all objects have; a value may be too deep to be written."""
    deep = "[" * 5_000 + "]" * 5_000
    visit(browser, desk)
    browser.wait("input[type=file]")
    for column in ("constructor", "__proto__"):
        content = "".join((f'{{"{column}": "one"}}\n', "{}\n[1]\n", f'{{"{column}": {deep}}}\n'))
        found = browser.run(_TEXTS_BY_RECORD, "hostile.jsonl", content)
        assert found == ["one", "", "", "(nested too deeply to be shown)"]


def test_values_that_are_no_names_name_no_text(browser: Browser, desk: Desk) -> None:
    visit(browser, desk)
    browser.wait("input[type=file]")
    content = '{"ref": {"toString": 1}, "text": "one"}\n{"ref": 2, "text": "two"}\n'
    found = browser.run(
        """const [content] = arguments;
        return readTable(new File([content], "a.jsonl")).then((table) =>
          [...textsOf(table, { records: [] }, "ref", "text").texts])""",
        content,
    )
    assert found == [["2", "two"]]


def test_a_label_of_any_length_reaches_the_server(browser: Browser, desk: Desk) -> None:
    visit(browser, desk)
    browser.wait("input[type=file]")
    found = browser.run(
        """const body = { decision_id: "dec_1", question: "q", label: "字".repeat(30_000) };
        return posted({ path: FEEDBACK, body }).then(({ error }) => error.status)"""
    )
    assert found == 404
    browser.drain()


@pytest.mark.parametrize(("name", "content", "message"), UNFIT)
def test_texts_of_which_no_decision_can_be_told_are_refused(
    browser: Browser, desk: Desk, tmp_path: Path, name: str, content: str, message: str
) -> None:
    path, answers = tmp_path / name, tmp_path / "answers.jsonl"
    path.write_text(content)
    answers.write_text(MADE_OF_TWO)
    visit(browser, desk)
    choose(browser, path, *([] if name == "alone.txt" else [answers]))
    browser.wait(".label-trouble", message)


def mapped(desk: Desk, path: Path) -> Path:
    """A file as `svc map` writes it, of the decisions on the tickets."""
    page = desk.server.get(f"/v1/audit?project={desk.project}&limit=100").json()
    ids = {one["ref"]: one["id"] for one in page["entries"]}
    lines = [{"line": at, "id": ids[ref]} for at, ref in enumerate(desk.texts, 1)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        (b'ref,text\nT-1,"open', "record 2: a quote is opened and never closed"),
        (b'ref,text\nT-1,"a" b', "record 2: text follows a closing quote"),
        (b"ref,text\nT-1,Gr\xfc\xdfe", "is not UTF-8"),
        (b"ref,text\n", "holds no records"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(
    browser: Browser, desk: Desk, tmp_path: Path, content: bytes, trouble: str
) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    visit(browser, desk)
    choose(browser, path)
    browser.wait(".label-trouble", trouble)


def test_another_file_is_told_before_anything_is_given_back(
    browser: Browser, desk: Desk, tmp_path: Path
) -> None:
    visit(browser, desk)
    choose(browser, spreadsheet(tmp_path / "other.csv", {"X-1": "Another text"}))
    browser.wait(".label-files .note")
    browser.wait("button", "Start").click()
    browser.wait(".state", "The file has none of these decisions")
    query = f"project={desk.project}&question=team&reviewer=ada"
    assert desk.server.get(f"/v1/review?{query}").json()["progress"]["skipped"] == 0
    browser.wait("button", "Choose again").click()
    begin(browser, spreadsheet(tmp_path / "tickets.csv", desk.texts))
    say(browser, "1")


def test_what_the_file_lacks_is_told_and_given_back(
    browser: Browser, desk: Desk, tmp_path: Path
) -> None:
    some = {ref: text for ref, text in desk.texts.items() if ref not in ("T-1", "T-2", "T-3")}
    visit(browser, desk)
    begin(browser, spreadsheet(tmp_path / "some.csv", some))
    for _ in range(TICKETS - 3):
        say(browser, "1")
    browser.wait(".state", "Nothing is left to label")
    browser.wait(".label-notices", "3 decisions not in the file")
    browser.until(lambda: set(desk.labels()) == set(some), "not all labels were saved")


def test_labels_that_are_not_saved_are_told_and_sent_again(
    chromium: Browser, desk: Desk, file: Path
) -> None:
    visit(chromium, desk)
    begin(chromium, file)
    assert not chromium.run(_CLOSING)
    network(chromium, offline=True)
    given = {say(chromium, "1"): "account", say(chromium, "2"): "billing"}
    chromium.wait(".label-saving .warn", "2 labels not saved yet: The server cannot be reached")
    assert chromium.run(_CLOSING)
    chromium.wait(".label-saving button", "Try now")
    network(chromium)
    # The page may have tried by itself meanwhile.
    chromium.run("document.querySelector('.label-saving button')?.click()")
    saved(chromium)
    assert desk.labels() == given and not chromium.run(_CLOSING)
    chromium.drain()


def test_what_was_labelled_in_another_tab_is_passed_over(
    browser: Browser, desk: Desk, file: Path
) -> None:
    visit(browser, desk)
    begin(browser, file)
    query = f"project={desk.project}&question=team&reviewer=ada&limit=20"
    items = desk.server.get(f"/v1/review?{query}").json()["items"]
    here = ref(browser)
    (shown,) = (item for item in items if item["ref"] == here)
    browser.run(_ELSEWHERE, shown["id"], "team")
    browser.wait("article p.note", items[1]["ref"] if items[0] is shown else items[0]["ref"])


def test_no_text_of_the_file_leaves_the_page(browser: Browser, tmp_path: Path) -> None:
    with Server(tmp_path / "svc.db", "--demo") as server:
        desk = seeded(server, tmp_path / "svc.db", TICKETS)
        nothing_leaves(browser, desk, spreadsheet(tmp_path / "tickets.csv", desk.texts))


def nothing_leaves(browser: Browser, desk: Desk, file: Path) -> None:
    visit(browser, desk)
    begin(browser, file)
    for key in ("1", "2", "3", "4"):
        say(browser, key)
    browser.press("s")
    saved(browser)
    browser.wait("nav a", "Calibration").click()
    browser.wait(".figure", "Labels")
    _, requests = browser.drain()
    assert sum("feedback" in one["url"] for one in requests) == 4
    assert MARK not in json.dumps(requests)
    kept = b"".join(path.read_bytes() for path in desk.db.parent.glob("svc.db*"))
    assert kept and MARK.encode() not in kept and MARK not in desk.server.log
    stored = "return JSON.stringify([sessionStorage, localStorage]) + location.href"
    assert MARK not in browser.run(stored)


def test_a_text_that_is_markup_is_shown_as_text(
    browser: Browser, desk: Desk, tmp_path: Path
) -> None:
    hostile = {ref: f"{HOSTILE}\n{ref}" for ref in desk.texts}
    visit(browser, desk)
    begin(browser, spreadsheet(tmp_path / "hostile.csv", hostile))
    assert text(browser) == hostile[ref(browser)]
    assert not browser.all("main img") and "broken" not in browser.title


def test_nothing_is_left_without_decisions(browser: Browser, desk: Desk, file: Path) -> None:
    query = {"project": desk.project, "question": "nowhere", "reviewer": "ada"}
    browser.open(desk.server.url, f"label?{urlencode(query)}")
    choose(browser, file)
    browser.wait(".label-files .note")
    browser.wait("button", "Start").click()
    browser.wait(".state.error", "was never asked a question")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_is_read_in_both_schemes_and_widths(
    browser: Browser, desk: Desk, tmp_path: Path, width: int, dark: bool
) -> None:
    long = {ref: f"{text}\n\n" + f"{text} " * 200 for ref, text in tickets(TICKETS).items()}
    visit(browser, desk, width=width, dark=dark)
    begin(browser, spreadsheet(tmp_path / "long.csv", long))
    say(browser, "1")
    browser.wait(".label-last", "The model")
    assert browser.run("return document.documentElement.scrollWidth") == width
    assert browser.run(_WIDE) == []
    colours = browser.run(_COLOURS, f"{TEXTS}, kbd, .label-text, .label-list span")
    assert [found for found in colours if contrast(*found[:2]) < 4.5] == []
    browser.shoot(f"label-{width}-{'dark' if dark else 'light'}")
