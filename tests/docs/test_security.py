"""The figures of SECURITY.md are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc import limits, pacing, ratelimit
from svc.bulk import sending
from svc.engine import ask, cache, reply
from svc.providers import streams
from svc.providers.redaction import A_SECOND, LETTER_S
from svc.server import refusals
from svc.server.request_reading import HEAD_BYTES, HEAD_LINES, PIECE_BYTES, PIECE_PAUSE_S
from svc.store import writer
from svc.store.label_records import BYTES_A_CHAR
from svc.web import decorators
from svc.web.decorators import ARRIVING_BYTES

ROOT = Path(__file__).parents[2]
MIB, KIB = 1024 * 1024, 1024

SAID = {
    "the last {} reviewers of a question": limits.JUDGEMENTS_KEPT,
    "at most {} fields of the state where `explain`": limits.EXPLAIN_FIELDS,
    "deleted {} days after the job's end": limits.JOB_KEPT_DAYS,
    "A page of the audit log ends after {} MB": limits.PAGE_BYTES // 1_000_000,
    "all responses together at most {} MiB wait": limits.WAITING_BYTES // MIB,
    "the {} MB of calls over": limits.CALLS_BYTES // MIB,
    "of calls over {} KB that a worker holds": limits.CALL_BYTES_UNCOUNTED // KIB,
    "with the {} MB of bodies over": limits.BODIES_BYTES // MIB,
    "A body has at most {:,} members and elements": limits.BODY_PARTS,
    "(of `/v1/decisions` {:,}), those": limits.DIALECT_PARTS,
    "One that comes in pieces of less than {} bytes": PIECE_BYTES,
    "is read {:.0f} times a second, after the first 128": 1 / PIECE_PAUSE_S,
    "A head has at most {} KiB": HEAD_BYTES // KIB,
    "KiB and {} lines.": HEAD_LINES,
    "those of a job {:,}, counted before": limits.JOB_PARTS,
    "among the {:,} characters of all questions": limits.QUESTION_TEXT_CHARS,
    "fields with `explain` have {:,} characters": limits.EXPLAIN_NAMES_CHARS,
    "in the findings of `/v1/lint` {:,}.": limits.LINT_CHARS,
    "of a request have sent {} MB so": limits.SENT_AGAIN_BYTES // 1_000_000,
    "One of at most {} MB takes about a second": limits.BODY_MB,
    "reads up to {:,} of them for its prediction sets": limits.LABELS_READ,
    "in the last {:,} and": limits.RATES_DEPTH,
    "and {:,} decisions of a project": limits.REVIEW_DEPTH,
    "Labels in bulk are written {} in a transaction": limits.BULK_STORED_AT_ONCE,
    "where {} bytes of what was read": BYTES_A_CHAR,
    "The models of a request are asked for {:,} probabilities": limits.READ_OPTIONS,
    "a decision of more than {} questions, is stored": writer.SMALL,
    "The id of a model has {} bytes at most": limits.MODEL_ID_BYTES,
    "all ids of a request {:,}.": limits.MODEL_IDS_BYTES,
    "and each every {:g} s at least": ratelimit.ASKS_S,
    "Of a reply at most {} MiB are read": limits.REPLY_BYTES // MIB,
    "{} KiB of heads, chunk sizes and trailers": limits.REPLY_FRAMING_BYTES // KIB,
    "trailers in {:,} lines": limits.REPLY_LINES,
    "and {:,} pieces": limits.REPLY_PIECES,
    "of all replies to a request {:,} lines": limits.REPLIES_LINES,
    "beyond {} of each": limits.REPLY_LINES_ALWAYS_READ,
    "more than {} pieces a worker reads": limits.REPLY_READS_UNCOUNTED,
    "pieces a worker reads {} a second, all together": limits.REPLY_READS_A_SECOND,
    "a worker reads about {:,} of those a second": limits.REPLY_LINES_A_SECOND,
    "may hold {:,} members and elements, one of them": limits.REPLIES_PARTS,
    "elements, one of them {:,}, of which": limits.REPLY_PARTS,
    "where {} bytes count as one": limits.REPLY_BYTES_A_PART,
    "a worker holds {} at once": limits.LONG_REPLIES_BYTES // limits.REPLY_BYTES,
    "Replies of over {:,} members are read one": limits.REPLY_PARTS_ALWAYS_READ,
    "so are texts of over {:,} characters": ask.SMALL_CHARS,
    "may have {:,} and those of all its models": limits.MODEL_REPLIES_NAMED,
    "that come in or wait have {} MB of": ARRIVING_BYTES // MIB,
    "it keeps {:,} characters of each text": limits.REPLY_TEXT_CHARS,
    "of each text, {} of each alternative": limits.ALTERNATIVE_CHARS,
    "and {} MB in all": limits.REPLIES_KEPT // MIB,
    "Batch API may take {} s until": streams.SPARE_S,
    "within 10 s and {} s of a processor": limits.HOOK_PROCESSOR_S,
    "what takes more than {:g} ms of it": 1_000 * limits.EXCHANGE_PROCESSOR_S,
    "one whose creations had none, {} times at most": sending.CREATIONS,
    "and {:g} s for each MB that comes": 1_000_000 * limits.EXCHANGE_BYTE_S,
    "Where these have taken {} s of a processor": limits.PEER_PROCESSOR_S,
    "where exports take a second beyond {} s each": limits.EXPORT_PROCESSOR_S,
    "that sends traces has over {} MB": limits.TRACES_BYTES // MIB,
    "those of all its models {:,}; replies": limits.REPLIES_NAMED,
    "replies with up to {:,} do not count": limits.REPLY_NAMED_ALWAYS_READ,
    "Of a position {} alternatives are looked at": limits.MOST_LOGPROBS,
    "as were allowed, and {}.": limits.TOKENS_BEYOND,
    "JSON is looked for in {:,} characters": reply.JSON_CHARS,
    "at most {:,} objects and lists": reply.JSON_BRACKETS,
    "and {} places that begin like it": reply.JSON_STARTS,
    "among the last {:,} members": reply.JSON_PARTS_TRIED,
    "counts as one for each {} characters": reply.NAME_CHARS_A_PART,
    "that takes {:.0f}% of a processor at most in each worker": 100 * A_SECOND,
    "look in about {:,.0f} letters a second": round(A_SECOND / LETTER_S, -4),
    "a worker logs {} a minute": limits.FAILURES_LOGGED,
    "have {} lines a minute and process together": limits.STRANGERS_LOGGED,
    "A file of results may have {} MB and four lines": limits.BATCH_REPLY_BYTES // MIB,
    "they leave {} MB of the disk free": limits.LEFT_BY_RESULTS_BYTES // 1_000_000,
    "all workers together {} a second for each": limits.REFUSALS_AT_ONCE // 120,
    "where they are more than {} a second for each processor, and": limits.HELD_A_PROCESSOR // 60,
    "half a second later, or up to {:g} s where": limits.MOST_HELD_S,
    "each worker sends {} a second at once together": limits.REFUSALS_AT_ONCE // 60,
    "and {:,.0f} after a quiet moment": limits.REFUSALS_AT_ONCE * limits.REFUSALS_BURST_S / 60,
    "less than {:.0f} ms after another answer": refusals.JUST_NOW_S * 1_000,
    "Of other looks {} a second are answered at once": limits.LOOKS_AT_ONCE // 60,
    "at once {:.0f} ms or more after": 1_000 * refusals.CALM_S,
    "on their connection, {} each in": limits.QUICK_LOOKS_AT_ONCE // 60,
    "200 ms, and {} on new connections": limits.LOOKS_AT_ONCE // 60,
    "on new connections, {} of them of each address": limits.FIRST_LOOKS_AT_ONCE // 60,
    "need no key answer {:,} requests a minute": limits.OPEN_RPM,
    "requests a minute, {} of them at once": limits.OPEN_AT_ONCE,
    "activity over all projects reads {:,} sums": limits.ACTIVITY_SUMS,
    "among the last {:,} of a question": limits.LABELS_LOOKED_AT,
    "the doubt of the last {:,} that were labelled": limits.REVIEW_DECISIONS,
    "fewer that have more than {:,} characters with": limits.BULK_STORED_CHARS,
    "all are in one, of {:,} characters at most": limits.ATOMIC_CHARS,
    "a worker remembers {:,}": limits.FITS_REMEMBERED,
    "Where that takes over {:g} s, leaves": cache.PATIENCE_S,
    "At most {} model calls a request": limits.MODEL_CALLS,
    "a key has {1} of a processor for them in each worker": pacing.COMPANY,
    "over all workers {1} of one for every two": pacing.COMPANY,
    "within the last ten minutes it has {1}.": pacing.VISITORS,
    "What a request took beyond {:g} ms, in whichever threads": 1_000 * decorators.USUAL_S,
    "once the key is {} s ahead of what it has": decorators.LENIENCE_S,
    "({} jobs a key,": limits.JOBS_OPEN,
}


@pytest.fixture(scope="module")
def text() -> str:
    return " ".join((ROOT / "SECURITY.md").read_text().split())


@pytest.mark.parametrize("sentence", SAID)
def test_a_figure_of_security_is_that_of_the_code(text: str, sentence: str) -> None:
    figure = SAID[sentence]
    figures = figure if isinstance(figure, tuple) else (figure,)
    assert sentence.format(*figures) in text


def test_company_and_visitors_are_those_of_security(text: str) -> None:
    assert "within the last ten seconds, a key has" in text and pacing.COMPANY[0] == 10
    assert "within the last ten minutes it has" in text and pacing.VISITORS[0] == 600


def test_a_second_of_replies_is_what_security_promises(text: str) -> None:
    said = "those to a request take about a second of a processor"
    assert said in text and limits.REPLIES_PROCESSOR_S == 1.0
    assert "a fifth each of more than five" in text and limits.COUNCIL[1] == 5
