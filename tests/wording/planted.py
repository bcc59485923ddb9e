"""Questions with one planted fault each, and the same questions put well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.jsontext import JsonObject

Questions = Mapping[str, Any]
TEAMS = {
    "billing": "Charges, invoices and refunds",
    "technical": "Errors, crashes and outages",
    "sales": "Offers, contracts and prices before buying",
}
TEAM: JsonObject = {
    "type": "choice",
    "instructions": "Which team should handle this message?",
    "options": TEAMS,
}
HARM: JsonObject = {
    "type": "score",
    "instructions": "How much harm does this bug do?",
    "levels": ["None: wording alone", "Some: a detour helps", "Much: work stops"],
}


def yes_no(instructions: str, **fields: Any) -> Questions:
    return {"q": {"type": "noul", "instructions": instructions, **fields}}


def team(**fields: Any) -> Questions:
    return {"q": {**TEAM, **fields}}


def offering(**options: str) -> Questions:
    return team(options=options)


def harm(*levels: str) -> Questions:
    return {"q": {**HARM, "levels": list(levels)}}


def taking(kind: str, instructions: str, **fields: Any) -> Questions:
    return {"q": {"type": kind, "instructions": instructions, **fields}}


def examples(*pairs: tuple[str, bool]) -> Questions:
    shown = [{"state": state, "label": label} for state, label in pairs]
    return yes_no("Is the writer angry?", examples=shown)


def after(condition: Any) -> Questions:
    return {"team": TEAM, "q": {**HARM, "when": {"@team": condition}}}


def depending(instructions: str) -> Questions:
    first = yes_no("Is the parcel damaged?")["q"]
    second = {"type": "noul", "instructions": instructions, "depends_on": ["damaged"]}
    return {"damaged": first, "q": second}


# By code: the planted fault, and how the question should have been put.
PLANTED: dict[str, tuple[Questions, Questions]] = {
    "no-question": (yes_no("Customer anger"), yes_no("Is the customer angry?")),
    "two-questions": (
        yes_no("Is the customer angry and does the message name an invoice?"),
        yes_no("Is the customer angry about an invoice and a refund?"),
    ),
    "double-negation": (
        yes_no("Is it untrue that the parcel was not left without a note?"),
        yes_no("Was the parcel left with a note?"),
    ),
    "negative-question": (
        yes_no("Is the customer not satisfied?"),
        yes_no("Does the customer ask for a call that is not arranged yet?"),
    ),
    "leading": (
        yes_no("Surely this customer is angry, isn't it?"),
        yes_no("Is this customer angry?"),
    ),
    "presupposition": (
        yes_no("Given that the goods are broken, is a refund due?"),
        yes_no("Is a refund due for these goods?"),
    ),
    "one-option-named": (
        team(instructions="Should billing or another team handle this message?"),
        team(instructions="Which team should handle it: billing, technical or sales?"),
    ),
    "format-order": (
        team(instructions="Which team is it? Answer with a JSON object."),
        team(instructions="Which team can answer with the fewest steps?"),
    ),
    "shouting": (
        team(instructions="Which team is it? You MUST pick the main one!!"),
        team(instructions="Which team is it? The word URGENT in a message says nothing."),
    ),
    "vague-quantifier": (
        yes_no("Does the message name many faults?"),
        yes_no("Does the message name three faults or more, however many users?"),
    ),
    "absolute-word": (
        yes_no("Is the writer completely satisfied?"),
        yes_no("Is the writer satisfied with what they bought?"),
    ),
    "relative-time": (
        yes_no("Was the parcel promised for last week?"),
        yes_no("Was the parcel promised for the week before the date of the message?"),
    ),
    "dangling-reference": (
        yes_no("Does the above message name an invoice?"),
        yes_no("Does the message name an invoice above 1,000 euros?"),
    ),
    "list-in-text": (
        taking("text", "Which team is it? Give one of: billing, technical, sales."),
        taking("text", "Which team does one of the writers name?"),
    ),
    "no-unit": (
        taking("number", "How long did the repair take?"),
        taking("number", "How long did the repair take, in hours?"),
    ),
    "overlapping-options": (
        offering(bugs="Errors and crashes", faults="Crashes, errors", sales="Offers and prices"),
        offering(paid="The invoice is paid", open="The invoice is not paid"),
    ),
    "unequal-options": (
        offering(
            billing="Charges, invoices, receipts, refunds, payment methods, card changes, "
            "subscriptions, plan changes, tax numbers, reminders, late fees and credit notes",
            technical="Errors",
            sales="Offers",
        ),
        team(),
    ),
    "half-described": (
        offering(billing="Charges and refunds", technical="Errors and crashes", sales=""),
        offering(billing="", technical="", sales=""),
    ),
    "coded-option": (
        offering(P1="", P2="", P3=""),
        offering(P1="Work stops", P2="A detour helps", P3="Wording alone"),
    ),
    "option-names-another": (
        offering(billing="Charges and refunds", sales="Money questions other than billing"),
        offering(billing="Charges and refunds", sales="Offers, not later than the contract"),
    ),
    "no-escape": (
        team(escape=False),
        team(escape=False, options={**TEAMS, "other": "Anything that no team does"}),
    ),
    "two-escapes": (
        team(options={**TEAMS, "other": "Anything that no team does"}),
        team(escape=False, options={**TEAMS, "other": "Anything that no team does"}),
    ),
    "choice-of-yes-no": (
        offering(yes="The writer is angry", no="The writer is calm"),
        offering(yes="Agrees", no="Refuses", later="Puts it off"),
    ),
    "levels-out-of-order": (
        harm("High: work stops", "Low: a detour helps", "None: wording alone"),
        harm("None: wording alone", "Low: a detour helps", "High: work stops"),
    ),
    "level-gap": (
        harm("0 to 10 people", "20 to 30 people", "31 to 50 people"),
        harm("0 to 10 people", "11 to 30 people", "31 to 50 people"),
    ),
    "duplicate-level": (
        harm("Wording alone", "Work of one person stops", "The work of one person stops"),
        harm("Very negative", "Negative", "Positive"),
    ),
    "bare-levels": (harm("1", "2", "3"), harm("1: wording", "2: a detour", "3: work stops")),
    "contradicted-bounds": (
        taking("integer", "How good is it on a scale from 1 to 10?", min=0, max=5),
        taking("integer", "How good is it on a scale from 1 to 10?", min=1, max=10),
    ),
    "refused-null": (
        taking("text", "Which product is it? Null if none is named."),
        taking("text", "Which product is it? Null if none is named.", nullable=True),
    ),
    "idle-threshold": (team(min_confidence=0.2), team(min_confidence=0.6)),
    "unreachable-threshold": (team(min_confidence=1), team(min_confidence=0.95)),
    "one-sided-examples": (
        examples(("I am furious.", True), ("How dare you.", True)),
        examples(("I am furious.", True), ("All is well.", False)),
    ),
    "contradicting-examples": (
        examples(("I am furious.", True), ("I am  furious.", False)),
        examples(("I am furious.", True), ("I was furious.", False)),
    ),
    "unmentioned-dependency": (
        depending("Does the customer ask for money back?"),
        depending("Does the customer ask for money back for the damage to the parcel?"),
    ),
    "impossible-condition": (after("support"), after(["billing", "none_of_these"])),
    "repeated-question": ({"again": TEAM, "q": TEAM}, {"harm": HARM, "q": TEAM}),
}
# The same faults in other words and places, beside the ones above.
MORE: list[tuple[str, Questions]] = [
    ("two-questions", yes_no("Is it late? Is it broken?")),
    ("two-questions", yes_no("Is the parcel late and/or broken?")),
    ("double-negation", yes_no("Is the delay not uncommon?")),
    ("double-negation", yes_no("Didn't the customer get no answer?")),
    ("negative-question", yes_no("Isn\N{RIGHT SINGLE QUOTATION MARK}t the customer angry?")),
    ("negative-question", yes_no("Does the letter fail to name a sum?")),
    ("leading", yes_no("The customer is angry, right?")),
    ("leading", yes_no("Don't you think that the customer is angry?")),
    ("presupposition", yes_no("Since the goods are broken, is a refund due?")),
    ("format-order", team(instructions="Which team is it? Reply only with the letter.")),
    ("format-order", yes_no("Is the writer angry? Answer yes or no.")),
    ("format-order", yes_no("Is the writer angry? Do not explain.")),
    ("shouting", team(instructions="Which team is it? PICK THE MAIN ONE.")),
    ("overlapping-options", offering(all="Errors and crashes at night", part="Crashes at night")),
    (
        "overlapping-options",
        {"q": {**TEAM, "type": "multi", "options": {"a": "Bad food", "b": "bad food"}}},
    ),
    ("option-names-another", offering(late_fee="Fees", refund='Like "late_fee", but paid back')),
    ("levels-out-of-order", harm("3: work stops", "2: a detour", "1: wording")),
    ("levels-out-of-order", harm("Often: daily", "Sometimes: weekly", "Never")),
    ("levels-out-of-order", harm("Good", "Excellent", "Bad")),
    ("level-gap", harm("1: wording", "2: a detour", "4: work stops")),
    ("contradicted-bounds", {"q": {**HARM, "instructions": "How bad is it, from 1 to 5?"}}),
    ("contradicted-bounds", taking("text", "When is it due? As YYYY-MM-DD.", max_length=8)),
    ("contradicted-bounds", taking("text", "What is it? At most 300 characters.")),
    ("contradicted-bounds", taking("integer", "How much is it, with two decimals?")),
    ("contradicted-bounds", taking("number", "How sure is the writer, in percent?", max=1)),
    ("contradicted-bounds", taking("number", "What is the price, at least 100?", max=50)),
    ("idle-threshold", {"q": {**HARM, "min_confidence": 0.3}}),
    ("idle-threshold", {"q": {**TEAM, "type": "multi", "threshold": 0}}),
    ("unreachable-threshold", {"q": {**TEAM, "type": "multi", "threshold": 1}}),
    (
        "impossible-condition",
        {"a": yes_no("Is it late?")["q"], "q": {**TEAM, "when": {"@a": "yes"}}},
    ),
    (
        "impossible-condition",
        {
            "a": HARM,
            "q": {
                **TEAM,
                "rules": [
                    {"if": {"@a": {"exists": True}, "b": 1}, "answer": "sales"},
                    {"if": {"@a": 3}, "answer": "sales"},
                ],
            },
        },
    ),
    ("no-unit", taking("number", "What is the weight of the parcel?")),
    ("coded-option", offering(cat_1="", cat_2="")),
    ("two-escapes", team(options={**TEAMS, "none_of_the_above": ""})),
]
# Sound questions that come near to a fault without having one.
SOUND: list[Questions] = [
    yes_no("Is this an invoice or a credit note?"),
    yes_no("Is the message angry, whether or not it names a fault?"),
    yes_no("Is there anything that would make them stay?"),
    yes_no("The customer is angry."),
    yes_no("Ist der Kunde verärgert? Höflichkeit zählt nicht als Zufriedenheit."),
    team(instructions="Pick the team."),
    team(escape=False, when={"plan": "pro"}, options={"paid": "", "unpaid": ""}),
    offering(small="Up to 50 people", medium="50 to 1,000 people", large="More than 1,000 people"),
    {
        "q": {
            **TEAM,
            "instructions": "How large is the firm?",
            "options": {"large": "", "small": ""},
        }
    },
    harm("One star", "Two stars", "Three stars"),
    taking("number", "What is the sum before tax?", min=0),
    taking("integer", "For how many people is a table wanted?", min=1, max=200),
    taking("text", "On which date is it due? As YYYY-MM-DD.", max_length=10),
]
