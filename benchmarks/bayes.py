"""A real, overconfident classifier served as an OpenAI-compatible provider with logprobs.

Naive Bayes over words, with numpy: it takes every word for independent evidence, so it is often
right and nearly always too sure. It sees the prompt alone, as any model does.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import numpy as np

SMOOTHING = 0.1  # Lidstone's, added to every count
_WORD = re.compile(r"[a-z']+")
_STATE = re.compile(r"<(input-[0-9a-f]+)>\n(.*)\n</\1>", re.DOTALL)
_OPTION = re.compile(r"^([A-Z]+)\. (\S+)$", re.MULTILINE)


class NaiveBayes:
    """Multinomial naive Bayes over the words and pairs of words of a text."""

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        """`rows` are (text, class)."""
        self.classes = sorted({label for _, label in rows})
        features = sorted({feature for text, _ in rows for feature in _features(text)})
        self._column = {feature: index for index, feature in enumerate(features)}
        counts = np.full((len(self.classes), len(features)), SMOOTHING)
        for text, label in rows:
            for feature in _features(text):
                counts[self.classes.index(label), self._column[feature]] += 1
        self._log_likelihood = np.log(counts / counts.sum(axis=1, keepdims=True))

    def log_probabilities(self, text: str) -> dict[str, float]:
        """The logarithm of each class's probability."""
        columns = [self._column[name] for name in _features(text) if name in self._column]
        scores = self._log_likelihood[:, columns].sum(axis=1)
        largest = scores.max()
        normalised = scores - largest - math.log(np.exp(scores - largest).sum())
        return dict(zip(self.classes, map(float, normalised), strict=True))


def _features(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return words + [f"{first} {second}" for first, second in pairwise(words)]


@contextmanager
def serving(model: NaiveBayes) -> Iterator[str]:
    """The base URL of a provider that answers with `model`, inside the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.dumps(_completion(model, json.loads(self.rfile.read(length)))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _completion(model: NaiveBayes, body: dict[str, Any]) -> dict[str, Any]:
    """One label, with the alternatives at its position."""
    prompt = body["messages"][-1]["content"]
    state = _STATE.search(prompt)
    assert state is not None
    known = model.log_probabilities(state[2])
    by_letter = [(letter, known[key]) for letter, key in _OPTION.findall(prompt)]
    ranked = sorted(by_letter, key=lambda row: -row[1])
    listed = [{"token": letter, "logprob": p} for letter, p in ranked]
    content = [{**listed[0], "top_logprobs": listed}]
    message = {"role": "assistant", "content": ranked[0][0]}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "stop",
        "logprobs": {"content": content},
    }
    return {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 1}}
