"""What is asked in the benchmarks, and the completions that answer it."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

from benchmarks.wrk import UNIQUE

MODEL = "m"
ALTERNATIVES = 20  # at each position, as many as the service asks for
STATE = (
    f"Ticket {UNIQUE}: I was charged twice for my order last week and the second charge is still "
    "pending on my card. Your chat told me to wait three days, which I did. Please refund it today."
)
CATEGORY = {
    "type": "choice",
    "instructions": "What is the ticket about?",
    "options": {"billing": "Charges, refunds, invoices", "shipping": "Where an order is"},
}  # three options, with the escape option
_NUMBERS = itertools.count()
URGENT = {"type": "noul", "instructions": "Does the customer want an answer today?"}


def body(*, debias: bool, questions: int = 2) -> str:
    """A decision request of one or two questions, its state to be made unique."""
    asked = {"category": CATEGORY, "urgent": URGENT}
    kept = dict(list(asked.items())[:questions])
    return json.dumps({"state": STATE, "questions": kept, "debias": debias})


def bodies(count: int, *, debias: bool, questions: int = 2) -> list[str]:
    """`count` such requests; no two of one run of the benchmarks are alike."""
    template = body(debias=debias, questions=questions)
    return [template.replace(UNIQUE, str(next(_NUMBERS))) for _ in range(count)]


def completion(questions: int = 2) -> str:
    """The chat completion that answers `body(questions=questions)` in either option order."""
    tokens = [_token("A", ("A", "B", "C", "0", "1", "2"))]  # some servers number their options
    if questions > 1:
        tokens += [_token("\n", ("\n",)), _token("yes", ("yes", "no"))]
    return json.dumps(
        {
            "id": "chatcmpl-bench",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": MODEL,
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "".join(token["token"] for token in tokens),
                    },
                    "finish_reason": "stop",
                    "logprobs": {"content": tokens},
                }
            ],
            "usage": {"prompt_tokens": 220, "completion_tokens": len(tokens), "total_tokens": 223},
        },
        separators=(",", ":"),
    )


def _token(text: str, likely: Sequence[str]) -> dict[str, Any]:
    """A token whose alternatives start with `likely`, each a tenth as probable as the last."""
    texts = [*likely, *(f"other{index}" for index in range(ALTERNATIVES - len(likely)))]
    top = [
        {"token": other, "logprob": round(math.log(0.9 * 0.1**rank), 4)}
        for rank, other in enumerate(texts)
    ]
    return {"token": text, "logprob": top[0]["logprob"], "top_logprobs": top}
