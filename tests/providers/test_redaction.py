import html
import json
import re
import unicodedata
from html.entities import codepoint2name
from urllib.parse import quote, unquote

import pytest

from svc.providers.bodies import ChatCall
from svc.providers.protocol import DecisionCall
from svc.providers.redaction import (
    A_SECOND,
    AT_ONCE_S,
    LETTER_S,
    LETTERS_ALWAYS,
    MESSAGE_CHARS,
    PIECE_LETTERS,
    PLAIN_LETTERS,
    REMOVED,
    UNREAD,
    Allowance,
    Redactor,
    _fold,
    _normal,
)
from svc.questions.kit.base import PlainQuestion


def redactor(prompt, key=None, allowance=None, **call):
    asked = ChatCall(({"role": "user", "content": prompt},), 10, **call)
    return Redactor(asked, key, allowance or Allowance())


def test_words_that_were_not_sent_stay():
    words = "Rate limit reached for requests"
    assert redactor("zzz").message(words) == words


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("my PIN is 77", "cannot process: my PIN is 77"),
        ("my PIN is 77", 'cannot process: "My\\nPIN\\tis 77!"'),
        ("account 4711-0815", "bad value x4711-0815y"),
        ("Straße Žižkov", "invalid: STRAßE žižkov"),
        ("mot de passe: été", "invalid: \\u00e9t\\u00e9"),
        ("密码是猫", "无效 密码"),
        ("line one\n  line two", "invalid: line one line two"),
        ("my PIN is 77", "invalid: &#80;&#x49;N &#55;7"),
        ("my PIN is 77", "invalid: \uff30\uff29\uff2e \uff17\uff17"),
        ("e\u0301te\u0301", "invalid: \u00e9t\u00e9"),
        ("ΣΟΦΟΣ, İzmir", "invalid: σοφος İZMİR"),
        ("my \uff30\uff29\uff2e is 77", "invalid: PIN 77"),
        ("my PIN is 77", "invalid: %50%49%4e+%37%37"),
        ("k\u0131rm\u0131z\u0131 Straße", "invalid: KIRMIZI STRASSE"),
        ("my PIN is 77", "invalid: \\N{LATIN CAPITAL LETTER P}IN \\\\N{DIGIT SEVEN}7"),
        ("密码是猫", "无效 %E5%AF%86%e7%a0%81"),
        ("my PIN is 77", "invalid:+%5CN%7BLATIN+CAPITAL+LETTER+P%7DIN+\\N%7BDIGIT+SEVEN%7D7"),
        ("密码是猫", "无效 b'\\xe5\\xaf\\x86\\xe7\\xa0\\x81'"),
        ("my PIN is 77", "invalid: \\U00000050\\U00000049N \\\\x37\\\\x37"),
        ("my PIN is 77", "invalid: &amp;amp;#80;&amp;#x49;N &#55;7"),
        ("my PIN is 77", "invalid: \\120\\111\\116 \\67\\\\067"),
        ("my PIN is 77", "invalid: %2550%2549N &#37;37&amp;#92;u0037"),
        ("mot de passe: été", "INVALID: \\U00E9T\\U00E9"),
        ("été", "INVALID: B'\\XC3\\XA9T\\XC3\\XA9'"),
        ("é𠮷", "invalid: \\n{latin small letter e with acute} \\u00020bb7"),
        ("비밀번호는 사과", unicodedata.normalize("NFD", "거부됨: 비밀번호는 사과")),
        (unicodedata.normalize("NFD", "비밀번호는 사과"), "거부됨: 비밀번호는 사과"),
    ],
)
def test_what_stands_in_the_prompt_is_taken_out(prompt, words):
    left = redactor(prompt).message(words)
    assert REMOVED in left
    kept = {word for word in left.replace(REMOVED, " ").split() if len(word) > 1}
    for secret in (
        "PIN",
        "77",
        "4711",
        "0815",
        "ižkov",
        "00e9",
        "密码",
        "one",
        "two",
        "σοφο",
        "zm",
        "rm",
        "str",
        "\u00e9",
        "XC3",
        "acute",
        "0bb7",
        "비밀",
        "사과",
    ):
        assert not any(secret.casefold() in word.casefold() for word in kept)


def test_text_in_parts_schemas_and_the_key_count_as_sent():
    parts = [
        {"type": "text", "text": "alpha"},
        {"type": "image_url", "image_url": {"url": "h://b"}},
    ]
    call = ChatCall(({"role": "user", "content": parts},), 10, schema={"properties": {"gamma": {}}})
    left = Redactor(call, "sk-delta", Allowance()).message("alpha h://b gamma sk-delta omega")
    assert "omega" in left
    assert not any(word in left for word in ("alpha", "h://b", "gamma", "delta"))


def test_an_echoed_image_is_taken_out_whatever_it_is():
    left = redactor("x").message("invalid image data:image/png;base64," + "iVBORw0KGgo" * 50)
    assert "iVBOR" not in left


@pytest.mark.parametrize(
    "words", ["100% of it", "%gg \\x1 \\U00110000 &zz;", "\\xff%80 is no UTF-8"]
)
def test_what_is_no_escape_is_left_or_shown_as_unknown(words):
    left = redactor("other").message(words)
    assert left in (words, "\ufffd\ufffd is no UTF-8")


def test_the_message_is_one_printable_line_of_bounded_length():
    left = redactor("").message("no\nway\x1b[31m " * 1_000)
    assert len(left) <= MESSAGE_CHARS
    assert left.isprintable()


def test_names_of_the_api_itself_stay_also_where_they_were_sent():
    names = ("logprobs", "response_format", "json_schema", "max_tokens", "temperature")
    words = f"mine: {', '.join(names)} are confidential"
    left = redactor(words, schema={"type": "object"}).message(f"unsupported {words}")
    assert left.startswith("unsupported")
    assert all(name in left for name in names)
    assert "mine" not in left and "confidential" not in left
    assert "temperature" not in redactor("my_temperature-x").message("bad my_temperature-x")


def test_names_of_members_count_as_sent():
    call = ChatCall((), 10, schema={"properties": {"gamma ray": {"type": "string"}}})
    assert "gamma" not in Redactor(call, None, Allowance()).message("bad gamma ray")


def test_the_words_of_a_question_for_a_decision_server_count_as_sent():
    question = PlainQuestion("choice", "Which alpha?", (("beta", "gamma"),), (0,))
    call = DecisionCall((question,), "delta state", ("https://epsilon.example/1.png",))
    left = Redactor(call, "sk-zeta", Allowance()).message(
        "no alpha beta gamma delta epsilon.example sk-zeta omega"
    )
    assert "omega" in left
    for word in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta"):
        assert word not in left
    strict = DecisionCall((question,), "s", deny_data_collection=True)
    assert Redactor(strict, None, Allowance()).message("unrelated") == ""


def test_a_strict_call_logs_no_message():
    assert redactor("x", deny_data_collection=True).message("unrelated") == ""


@pytest.mark.parametrize("code", ["two words", "x" * 65, "a\nb", "é", "", "secret-7"])
def test_a_code_that_is_none_or_was_sent_is_left_out(code):
    assert redactor("my secret-7 thing").code(code) == ""


@pytest.mark.parametrize("code", ["x-4111111111111111", "x.lymphoma", "jane_roe", "lymphoma-x"])
def test_a_code_that_holds_a_part_of_what_was_sent_is_left_out(code):
    assert redactor("lymphoma of Jane Roe, card 4111111111111111").code(code) == ""


def test_under_strict_privacy_no_code_is_logged_that_only_one_provider_may_have():
    strict = redactor("a state", deny_data_collection=True)
    assert (strict.code("rate_limit_exceeded"), strict.code("x7")) == ("rate_limit_exceeded", "")


def test_what_begins_like_an_image_is_no_image():
    state = "data: Jane Roe has lymphoma"
    asked = PlainQuestion("choice", "data: Which alpha?", (("beta", "data: gamma"),), (0,))
    for call in (DecisionCall((asked,), state), ChatCall(({"role": "user", "content": state},), 9)):
        left = Redactor(call, None, Allowance()).message(f"no: {state}")
        assert "Jane" not in left and "lymphoma" not in left
    left = Redactor(DecisionCall((asked,), "s"), None, Allowance()).message("no alpha, gamma")
    assert "alpha" not in left and "gamma" not in left


def test_a_code_is_logged_as_it_is():
    assert redactor("hello").code("rate_limit_exceeded") == "rate_limit_exceeded"


# --- What is looked through ---

LONG = "x" * 200_000


def test_many_long_calls_that_fail_at_once_are_not_all_looked_through() -> None:
    now = [0.0]
    allowance = Allowance(lambda: now[0], Ticking(0.0002))

    def told(prompt: str) -> tuple[str, str, bool]:
        call = ChatCall(({"role": "user", "content": prompt},), 10)
        made = Redactor(call, None, allowance)
        return made.message("no such model"), made.code("gone"), made.echoes("model gone")

    assert told(LONG) == ("no such model", "gone", False)
    seen = [told(LONG) for _ in range(64)]
    # Whatever is not looked for may be an echo.
    assert seen[-1] == (UNREAD, "", True)
    assert told("short") == ("no such model", "gone", False)
    now[0] = AT_ONCE_S / A_SECOND
    assert told(LONG) == ("no such model", "gone", False)


@pytest.mark.parametrize("letters", ["\ufdfa", "\u0301\u0316"])
def test_letters_are_looked_at_one_by_one(letters: str) -> None:
    """Python takes seconds to sort accents, and makes eighteen letters of some."""
    assert _normal(letters) == letters


def test_every_letter_that_stands_for_few_others_is_made_plain() -> None:
    for code in range(0x110000):
        plain = unicodedata.normalize("NFKD", chr(code))
        kept = len(plain) > PLAIN_LETTERS
        if plain.lower().upper().lower() == plain.lower():
            assert _fold(_normal(chr(code))) == _fold(chr(code) if kept else plain)


def test_an_echo_in_upper_or_lower_case_is_one_of_the_same_letters() -> None:
    for letter in map(chr, range(0x110000)):
        folded = _fold(_normal(letter))
        assert folded == _fold(_normal(letter.upper())) == _fold(_normal(letter.lower()))


def test_messages_leave_room_for_the_few_words_that_calls_depend_on() -> None:
    allowance = Allowance(lambda: 0.0, lambda: 0.0)
    calls = [redactor("x" * 100_000, allowance=allowance) for _ in range(20)]
    messages = [one.message("no such model") for one in calls]
    assert UNREAD in messages
    assert not any(one.echoes("unsupported parameter") for one in calls)


ESCAPED = (
    r'{"name": "\u041f\u0435\u0442\u0440\u043e\u0432"}',
    "&#74;&#111;&#104;&#110; &#83;&#109;&#105;&#116;&#104;",
    "&amp;#74;&amp;#111;&amp;#104;&amp;#110; J&uuml;rgen",
    "q=%4a%6f%68%6e%20%53%6d%69%74%68",
    r"\x4a\x6f\x68\x6e \123\155\151\164\150",
    r"\\u005a\\u006fe",
    r"line\nbreak\tJohn",
    "&amp;amp;amp;amp;amp;#74;&amp;amp;amp;amp;amp;#111;hn",
)


@pytest.mark.parametrize("state", ESCAPED)
@pytest.mark.parametrize("echo", [str, json.dumps, html.unescape, unquote, html.escape])
def test_a_text_that_was_sent_with_escapes_is_taken_out_however_it_comes_back(state, echo):
    """JSON that a caller sent as a state, with escapes in it, stood decoded in the log."""
    left = redactor(f"Classify: {state}", key="sk-%41%42%43").message(f"refused: {echo(state)}")
    for secret in ("John", "Smith", "Jürgen", "Petrov", "Петров", "Zoe", "name", "break"):
        assert secret not in unicodedata.normalize("NFC", left)
    assert "refused" in left


def _names(text):
    return "".join(f"&{codepoint2name.get(code, f'#{code}')};" for code in map(ord, text))


@pytest.mark.parametrize("case", [str.upper, str.title, str.swapcase, str.lower])
@pytest.mark.parametrize("echo", [json.dumps, repr, ascii, _names, quote, html.escape])
def test_an_echo_in_another_case_is_taken_out_with_its_escapes(echo, case):
    """`\\N98` was taken for a word, which was never sent, and `&OMEGA;` for no letter."""
    table = "PIN\tAlter\nUte\t42\nMax\t98\rTim\f7\b33 \u03a9\u039c\u00c9 \u00fcb"
    left = redactor(f"Classify: {table}").message(f"refused: {case(echo(table))}")
    assert not re.search(r"[^\W_]", left.removeprefix("refused")), left


def test_a_key_with_escapes_in_it_is_taken_out():
    assert "ABC" not in redactor("zzz", key="sk-%41%42%43").message("bad key sk-%41%42%43")


# What takes long to be made plain, a letter.
STRANGE = ("&a", "\\" * 20, "\\41a", "%41a", "\u3300", "\\N{a}", "&#" + "9" * 90)


@pytest.mark.parametrize("letters", STRANGE)
def test_however_strange_a_long_text_is_it_takes_its_part_and_no_more(letters):
    """One failed call took 5 s of a processor, and had other threads wait for 2 s of them."""
    taken = Ticking(0.005)
    allowance = Allowance(lambda: 0.0, taken)
    text = "&amp;amp;lt; " + letters * (2_000_000 // len(letters))
    assert redactor(text, allowance=allowance).code("wrong_code") == ""
    # One look before each piece, and one after it.
    assert taken.now / 2 <= AT_ONCE_S + 2 * taken.step
    # Of short calls the few words are looked for all the same.
    assert redactor("a" * 1_000, allowance=allowance).code("wrong_code") == "wrong_code"
    assert redactor("a" * 5_000, allowance=allowance).code("wrong_code") == ""


class Ticking:
    """A clock that goes on by a step at each look."""

    def __init__(self, step):
        self.step, self.now = step, 0.0

    def __call__(self):
        self.now += self.step
        return self.now


def test_short_calls_leave_long_ones_what_there_is():
    """6,000 calls of one key that failed left nothing for those of others for three minutes."""
    allowance = Allowance(lambda: 0.0, Ticking(10.0))
    nested = "&" + "amp;" * (LETTERS_ALWAYS // 4 - 50)
    for sent in (*["&amp;amp;x" * 100] * 5, *[nested] * 50):
        short = redactor(sent, allowance=allowance)
        assert short.message("no such model") == "no such model"
        assert short.code("wrong_code") == "wrong_code"
    assert allowance.has_left


def test_messages_are_taken_before_they_are_looked_for():
    """Or all of many at the same time would find that there is time for one."""
    letters = int(0.9 * AT_ONCE_S / 2 / LETTER_S)  # which pieces have a few more of
    calls = [redactor("x" * letters, allowance=(one := Allowance(lambda: 0.0, lambda: 0.0)))]
    calls += [redactor("x" * letters, allowance=one)]
    assert [call.message("no such model") for call in calls] == ["no such model", UNREAD]


@pytest.mark.parametrize("letters", [1_000, 100_000])
def test_nothing_is_looked_for_once_the_replies_to_a_request_have_taken_their_part(letters):
    call = ChatCall(({"role": "user", "content": "x" * letters},), 10)
    made = Redactor(call, None, Allowance(), lambda: False)
    assert (made.message("no"), made.code("gone"), made.echoes("no")) == (UNREAD, "", True)


@pytest.mark.parametrize("number", ["9" * 5_000, "0" * 5_000 + "65", "x" + "0" * 5_000 + "41"])
def test_a_number_that_python_refuses_is_no_character(number):
    """The state of a call, which its caller chose, ended it with an error of our own."""
    state = f"Is it so? &#{number}; John"
    assert redactor(state).message("no: John") == f"no:{REMOVED}"


@pytest.mark.parametrize("sent", ["&#0000123", "&#00042;", "&#x00c3", "&#007"])
def test_a_number_with_zeros_is_found_as_it_was_sent_too(sent):
    echo = sent.removeprefix("&#").removesuffix(";")
    assert echo not in redactor(f"pin {sent}").message(f"wrong: {echo}")
    assert redactor(f"pin {sent}").code(echo) == ""


@pytest.mark.parametrize("before", [0, PIECE_LETTERS - 100, 12_000])
@pytest.mark.parametrize("number", ["#{}74;", "#x{}4a;", "#X{}4A;"])
@pytest.mark.parametrize("zeros", [1, 90, 200])
def test_a_character_with_many_zeros_before_its_number_is_found(before, number, zeros):
    state = "." * before + " &" + number.format("0" * zeros) + "ohnson"
    assert redactor(state).message("no: Johnson") == f"no:{REMOVED}"


def test_an_escape_or_a_word_that_stands_where_a_piece_ends_is_found():
    for start in range(PIECE_LETTERS - 40, PIECE_LETTERS + 40):
        sent = "." * start + r" lymph\\u006f\u006da Smithson"
        left = redactor(sent).message("no lymphoma, Smithson")
        assert left == f"no{REMOVED},{REMOVED}", start
