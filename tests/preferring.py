"""A scripted model that reads our prompt and prefers options by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

LINE = re.compile(r"^Line \d+: question (\d+)(?:, option ([A-Z]+))?, (?:one of )?(.+)$", re.M)
CUED_LINE = re.compile(
    r"^only (?:one letter: )?(.+?) for (?:question (\d+))?(?:, )?(?:option ([A-Z]+))?$", re.M
)
CUED_ALONE = re.compile(
    r"^(?:Does option ([A-Z]+) apply\? )?Answer with only (?:one letter: )?(.+?)\.$", re.M
)
MEMBER = re.compile(r'^"q(\d+)": (.+)$', re.M)
QUESTION = re.compile(r"^Question(?: (\d+))?: ", re.M)
OPTION = re.compile(r"^([A-Z]+)\. ([^:\n]+)", re.M)

Labels = dict[str, float]


class PreferringModel:
    """Weighs each option by its name (1.0 where none is given); `yes` is P(yes) everywhere.

    `first_bonus` multiplies the weight of the option shown first: a bias that debiasing removes.
    """

    def __init__(
        self, weights: Mapping[str, float] | None = None, yes: float = 0.8, first_bonus: float = 1.0
    ) -> None:
        self.weights, self.yes, self.first_bonus = dict(weights or {}), yes, first_bonus

    def logprobs_reply(self, body: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """The reply's text, and `logprobs.content` with one token a label."""
        text = user_text(body)
        tokens: list[dict[str, Any]] = []
        for number, labels in wanted(text):
            shares = self.shares(text, number, labels)
            if tokens:
                tokens.append(token({"\n": 1.0}))
            tokens.append(token(shares))
        return "".join(entry["token"] for entry in tokens), tokens

    def verbal_reply(self, body: Mapping[str, Any]) -> str:
        """The reply's JSON text."""
        text = user_text(body)
        return json.dumps(
            {
                f"q{number}": self.member(text, int(number), form)
                for number, form in MEMBER.findall(text)
            }
        )

    def member(self, text: str, number: int, form: str) -> Any:
        listed = re.search(r"for each of ([^;]+?)(?:;|, the probability)", form)
        if listed is None:
            shares = self.shares(text, number, list(self.options(text, number)))
            top = sorted(shares, key=lambda label: -shares[label])[:5]
            return [{"label": label, "probability": shares[label]} for label in top]
        labels = listed[1].split(", ")
        if "option applies" in form:
            return dict.fromkeys(labels, self.yes)
        return self.shares(text, number, labels)

    def shares(self, text: str, number: int, labels: list[str]) -> Labels:
        if set(labels) == {"yes", "no"}:
            return {label: self.yes if label == "yes" else 1 - self.yes for label in labels}
        options = self.options(text, number)
        weights = {label: self.weights.get(options[label], 1.0) for label in labels}
        weights[labels[0]] *= self.first_bonus
        total = sum(weights.values())
        return {label: weight / total for label, weight in weights.items()}

    def options(self, text: str, number: int) -> dict[str, str]:
        """Letter to option name of one question."""
        starts = {int(match[1] or 1): match.start() for match in QUESTION.finditer(text)}
        reply = re.compile(r"^(Reply with|Answer with|Does option) ", re.M).search(text)
        assert reply is not None
        end = starts.get(number + 1, reply.start())
        return dict(OPTION.findall(text[starts[number] : end]))


def wanted(text: str) -> list[tuple[int, list[str]]]:
    """The number and the labels of each line that a prompt asks for, by any config."""
    lines = [(number, labels) for number, _part, labels in LINE.findall(text)]
    lines += [(number or "1", labels) for labels, number, _part in CUED_LINE.findall(text)]
    lines += [("1", labels) for _part, labels in CUED_ALONE.findall(text)]
    return [(int(number), re.split(r", | or ", labels)) for number, labels in lines]


def user_text(body: Mapping[str, Any]) -> str:
    """What the user's message says, images aside."""
    content: Any = body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def token(shares: Labels) -> dict[str, Any]:
    """One entry of `logprobs.content` with its alternatives, the most probable first."""
    rows = sorted(shares.items(), key=lambda row: -row[1])
    listed = [{"token": text, "logprob": math.log(max(p, 1e-9))} for text, p in rows]
    return {**listed[0], "top_logprobs": listed}
