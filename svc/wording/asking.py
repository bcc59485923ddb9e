"""Faults of instructions: how the question itself is put."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from svc.wording.text import (
    clauses,
    negated,
    plain,
    sentences,
    shown,
    word_set,
    words,
)
from svc.wording.text import spaced as as_words
from svc.wording.wording import INSTRUCTIONS, Spot, Wording

_AUXILIARY = "is|are|was|were|does|do|did|has|have|had|can|could|should|will|would|may|might|must"
_ASKING = word_set(
    "are assess can categorise categorize check choose classify could count decide describe",
    "determine did do does estimate evaluate extract find give grade had has have how identify is",
    "judge label list mark may might must name pick quote rank rate read say score select should",
    "sort state tag tell was were what when where whether which who whose why will would",
)
# Instructions of so few words that nothing is asked may be a heading.
_HEADING = 3
_SECOND = re.compile(
    rf"\band/or\b|\band (?:also |if so )?"
    rf"(?:{_AUXILIARY}|how|why|when|where|who|which|what|whether)\b"
)
_OPPOSITES = re.compile(
    r"\bnot (?:un(?:able|clear|common|fair|happy|likely|reasonable|related|usual|true|safe|wanted)"
    r"|im(?:possible|polite|proper|probable)|in(?:correct|complete|valid|appropriate|accurate)"
    r"|dis(?:satisfied|honest|pleased)|irrelevant|illegal)\b"
)
_NEGATIVE = re.compile(
    rf"^(?:(?:{_AUXILIARY})n't|cannot|can't|won't)\b"
    rf"|^(?:{_AUXILIARY})\b(?: (?!that\b|which\b|who\b|whose\b)[\w'-]+){{0,4}} "
    r"(?:not|never|no longer|fail to|lack)\b"
)
_LEADING = re.compile(
    r"\b(?:surely|obviously|of course|undoubtedly|undeniably|no doubt|needless to say|evidently"
    r"|(?:don't|wouldn't|won't) you (?:think|agree|say)|you (?:will|would|must|surely) agree"
    r"|as (?:everyone|everybody|anyone) (?:knows|can see)|it is (?:clear|obvious) that)\b"
    r"|, (?:isn't|aren't|wasn't|doesn't|don't|didn't|hasn't|won't|right|correct)"
    r"(?: (?:it|they|he|she|you|we|this|that))?\?"
)
_PRESUPPOSED = re.compile(
    r"\b(?:given|seeing|considering|now) that\b|\bas we (?:all )?know\b|\b(?:admit|admits) that\b"
)
_PRESUPPOSED_FIRST = re.compile(r"^(?:since|because)\b")
_FORMAT = re.compile(
    r"\b(?:answer|reply|respond|output|return)\b[^.?!]{0,30}\b(?:json|xml|yaml|markdown|csv)\b"
    r"|\b(?:answer|reply|respond) (?:only |just |simply )?(?:with|in|by) "
    r"(?:only |just |exactly |the |an? |one |two |single )*"
    r"(?:words?|letters?|numbers?|sentences?|keys?|labels?|names?|options?|digits?|lines?)\b"
    r"|\b(?:answer|reply|respond|say) (?:only |just |simply )?['\"]?(?:yes|true)['\"]? or\b"
    r"|\b(?:do not|don't|no|without) (?:explain|explanations?|comments?)\b|\bone[- ]word answer\b"
)
_EMPHATIC = re.compile(r"\b(?:MUST|NOT|NEVER|ALWAYS|ONLY|IMPORTANT|DO|ALL|VERY|WARNING)\b|!{2,}")
_SHOUTED = re.compile(r"(?:\b[A-Z]{3,}\b[ ,]+){2,}\b[A-Z]{2,}\b")
_VAGUE = re.compile(
    r"(?<!how )(?<!however )\b(?:many|few|several|a lot|lots of|often|frequently|rarely"
    r"|sometimes|somewhat|fairly|quite|reasonabl[ey]|appropriate(?:ly)?|significant(?:ly)?|considerabl[ey])\b"
)
_ABSOLUTE = re.compile(
    r"\b(?:always|completely|entirely|totally|absolutely|perfectly|at all times|in every case"
    r"|under (?:any|no) circumstances?|without exception)\b|\b100 ?(?:%|percent)"
)
_RELATIVE = re.compile(
    r"\b(?:today|yesterday|tomorrow|tonight|nowadays|currently|recently|right now"
    r"|(?:last|next|this|past|coming) (?:week|month|quarter|year|monday|friday|summer|winter))\b"
)
_DATED = re.compile(r"\b(?:19|20)\d\d\b|\bdate\b|\bcount(?:ed|ing)? from\b")
_POINTING = re.compile(
    r"\b(?:see|as (?:stated|mentioned|described|listed|shown|noted|defined)) "
    r"(?:above|below|earlier|before)\b"
    r"|\bthe (?:above|below|aforementioned) \w+"
    r"|\b(?:mentioned|listed|described|given) (?:above|below)\b"
)
_LISTED = re.compile(
    r"\b(?:one of|choose (?:from|between|one of)|pick (?:from|one of))"
    r"(?: (?:these|the following|the options))?:|\beither [\w-]+ or [\w-]+\b"
)
_MEASURE = re.compile(
    r"\bhow (?:long|far|tall|heavy|high|deep|wide|old|fast|hot|cold|warm|big)\b"
    r"|\b(?:weight|distance|length|duration|height|width|depth|temperature|speed|volume|age|size"
    r"|share|proportion|area)\b"
)
_UNIT = re.compile(
    r"\b(?:in|as|of|how many|number of|by) (?:whole |full |square |cubic )?"
    r"(?:milli|centi|kilo|mega|giga)?"
    r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|met(?:re|er)s?|miles?|feet|inch(?:es)?"
    r"|grams?|tonnes?|pounds?|ounces?|lit(?:re|er)s?|gallons?|bytes?|degrees?|celsius|fahrenheit"
    r"|kelvin|percent|knots|pixels?|cm|mm|km|kg|mb|gb|kb|ms|ha|hectares?|acres?|km/h|mph|fractions?"
    r"|people|employees|seats|persons|pages|words|items|characters)\b|%|\bfrom 0 to 1\b"
)


def no_question(wording: Wording) -> Iterator[Spot]:
    """A heading in place of a question."""
    said = words(wording.instructions)
    if wording.asked or len(said) > _HEADING:
        return
    if not said or said[0] not in _ASKING:
        yield Spot(INSTRUCTIONS, f"{shown(wording.instructions)} asks nothing")


def two_questions(wording: Wording) -> Iterator[Spot]:
    """Two questions that share one answer."""
    found = wording.asked
    if len(found) > 1:
        yield Spot(INSTRUCTIONS, f"it asks {len(found)} questions, and has one answer")
        return
    for sentence in found or sentences(wording.instructions):
        if second := _SECOND.search(plain(sentence)):
            yield Spot(INSTRUCTIONS, f'"{second[0]}" begins a second question')
            return


def double_negation(wording: Wording) -> Iterator[Spot]:
    """Two negations in one part of the question."""
    for sentence in wording.asked:
        for clause in clauses(sentence):
            if negated(clause) > 1 or _OPPOSITES.search(clause):
                yield Spot(INSTRUCTIONS, f"{shown(clause.strip())} denies twice")
                return


def negative_question(wording: Wording) -> Iterator[Spot]:
    """A yes/no question that asks whether something is not so."""
    for sentence in wording.asked if wording.yes_no else ():
        if _NEGATIVE.search(plain(sentence)):
            yield Spot(INSTRUCTIONS, f"{shown(sentence)} asks whether something is not so")
            return


def leading(wording: Wording) -> Iterator[Spot]:
    """Words that say which answer is wanted."""
    return _found(_LEADING, wording.plain, "says which answer is wanted")


def presupposition(wording: Wording) -> Iterator[Spot]:
    """A fact that is taken for granted."""
    yield from _found(_PRESUPPOSED, wording.plain, "takes something for granted")
    for sentence in wording.asked:
        if first := _PRESUPPOSED_FIRST.search(plain(sentence)):
            yield Spot(INSTRUCTIONS, f'"{first[0]}" takes something for granted')
            return


def one_option_named(wording: Wording) -> Iterator[Spot]:
    """Instructions that name a single one of the options."""
    if not wording.exclusive:
        return
    phrases = [as_words(key) for key in wording.options]
    said = f" {' '.join(words(wording.instructions))} "
    named = [phrase for phrase in phrases if _singles_out(said, phrase)]
    if len(named) == 1 and not _shares_words(named[0], phrases):
        yield Spot(INSTRUCTIONS, f"of all options only {shown(named[0])} is named")


def format_order(wording: Wording) -> Iterator[Spot]:
    """An order about the form of the reply."""
    return _found(_FORMAT, wording.plain, "is about the form of the reply")


def shouting(wording: Wording) -> Iterator[Spot]:
    """Capital letters and exclamation marks for emphasis."""
    text = wording.instructions
    if loud := _SHOUTED.search(text) or _EMPHATIC.search(text):
        yield Spot(INSTRUCTIONS, f'"{loud[0]}" shouts')


def vague_quantifier(wording: Wording) -> Iterator[Spot]:
    """An amount that everybody draws elsewhere, where yes or no depends on it."""
    return _in_yes_no(_VAGUE, wording, "has no border")


def absolute_word(wording: Wording) -> Iterator[Spot]:
    """A word that a single exception makes untrue, where yes or no depends on it."""
    return _in_yes_no(_ABSOLUTE, wording, "is untrue at the first exception")


def relative_time(wording: Wording) -> Iterator[Spot]:
    """A time that depends on a day which the question does not name."""
    if _DATED.search(wording.plain):
        return iter(())
    return _found(_RELATIVE, wording.plain, "depends on a day that is not named")


def dangling_reference(wording: Wording) -> Iterator[Spot]:
    """A pointer to a text that may stand elsewhere, or nowhere."""
    return _found(_POINTING, wording.plain, "points to a place in the prompt")


def list_in_text(wording: Wording) -> Iterator[Spot]:
    """A closed list of answers to a question for words."""
    if not wording.takes_words:
        return iter(())
    return _found(_LISTED, wording.plain, "lists the answers of a question for words")


def no_unit(wording: Wording) -> Iterator[Spot]:
    """A measure without the unit that it is wanted in."""
    text = wording.plain
    if wording.takes_number and (measure := _MEASURE.search(text)) and not _UNIT.search(text):
        yield Spot(INSTRUCTIONS, f'"{measure[0]}" has no unit')


def _singles_out(said: str, phrase: str) -> bool:
    """Whether words between spaces name an option, and not as the measure in `how large`."""
    return len(phrase) > 2 and f" {phrase} " in said.replace(f" how {phrase}", "")


def _shares_words(phrase: str, phrases: Sequence[str]) -> bool:
    """Whether another option has a word of this one, so that several may be meant."""
    own = set(phrase.split())
    return any(own & set(other.split()) for other in phrases if other != phrase)


def _in_yes_no(pattern: re.Pattern[str], wording: Wording, what: str) -> Iterator[Spot]:
    for sentence in wording.asked if wording.yes_no else ():
        yield from _found(pattern, plain(sentence), what)


def _found(pattern: re.Pattern[str], text: str, what: str) -> Iterator[Spot]:
    """The first place of a pattern in a plain text."""
    if match := pattern.search(text):
        yield Spot(INSTRUCTIONS, f'"{match[0].strip(", ")}" {what}')
