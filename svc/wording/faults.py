"""The table of faults; a new one is a function beside the others and an entry here."""

from __future__ import annotations

from svc.wording import asking, bounds, examples, links, offering, scales
from svc.wording.wording import Fault

_ALL = (
    Fault(
        "no-question",
        "A heading leaves open what is to be decided, and every model decides something else.",
        "Ask a whole sentence, such as “Which team should handle this message?”",
        asking.no_question,
    ),
    Fault(
        "two-questions",
        "Where the two have different answers, no single answer is right.",
        "Ask two questions in the same request; a `when` can tie the second to the first.",
        asking.two_questions,
    ),
    Fault(
        "double-negation",
        "Models lose count of negations, and answer the opposite.",
        "Say what is so: “Did the parcel arrive?” instead of “Is it not true that nothing came?”",
        asking.double_negation,
    ),
    Fault(
        "negative-question",
        "A “no” to it can mean either, to people and to models.",
        "Ask whether it is so, and read 1 minus the probability.",
        asking.negative_question,
    ),
    Fault(
        "leading",
        "The answer follows the hint instead of the input.",
        "Leave the hint out, and ask in neutral words.",
        asking.leading,
    ),
    Fault(
        "presupposition",
        "Inputs where it is not so have no right answer, and get one all the same.",
        "Ask for that fact in a question of its own, and put a `when` on this one.",
        asking.presupposition,
    ),
    Fault(
        "one-option-named",
        "An option that the question itself names is chosen more often.",
        "Name none of the options in the instructions, or all of them.",
        asking.one_option_named,
    ),
    Fault(
        "format-order",
        "The form is given by the question's type already; a second order can contradict it.",
        "Leave it out: say what is to be decided, not how to write it.",
        asking.format_order,
    ),
    Fault(
        "shouting",
        "Emphasis pulls answers towards what is emphasised, and weakens everything else.",
        "Write it as a plain sentence.",
        asking.shouting,
    ),
    Fault(
        "vague-quantifier",
        "Everybody draws the line elsewhere, so that labels and models cannot agree.",
        "Name the number or the sign that decides: “at least three” instead of “several”.",
        asking.vague_quantifier,
    ),
    Fault(
        "absolute-word",
        "Hardly anything is so without exception, so that careful models always say no.",
        "Say which exceptions still count, or leave the word out.",
        asking.absolute_word,
    ),
    Fault(
        "relative-time",
        "A model does not know which day it is, or when the input was written.",
        "Name the day it counts from, or a field of the state that holds it.",
        asking.relative_time,
    ),
    Fault(
        "dangling-reference",
        "Where the input and other questions stand differs by config and option order.",
        "Call it by its name: the input, the message, the field `policy`.",
        asking.dangling_reference,
    ),
    Fault(
        "list-in-text",
        "A question for words has no probability for each answer, and gives other spellings too.",
        "Ask a `choice` with these options.",
        asking.list_in_text,
    ),
    Fault(
        "no-unit",
        "Units are left out of numbers, so that 90 may be minutes or seconds.",
        "Name the unit: “How long did it take, in minutes?”",
        asking.no_unit,
    ),
    Fault(
        "overlapping-options",
        "What fits both is answered by chance, and its probability is divided between them.",
        "Join them, or say in both what tells them apart.",
        offering.overlapping,
    ),
    Fault(
        "unequal-options",
        "The option that is described at length is matched more often than the others.",
        "Describe all in about as many words; what decides cases goes into the instructions.",
        offering.unequal,
    ),
    Fault(
        "half-described",
        "A key without a description is read by its everyday meaning, next to defined ones.",
        "Describe all of the options, or none.",
        offering.half_described,
    ),
    Fault(
        "coded-option",
        "A model can only guess what a code stands for.",
        "Describe it in words; the key itself may stay, and is what the answer names.",
        offering.coded,
    ),
    Fault(
        "option-names-another",
        "Options are read in both orders, and one that leans on another makes it stand out.",
        "Describe each option by what it is itself.",
        offering.names_another,
    ),
    Fault(
        "no-escape",
        "An input that fits none of them gets one all the same, often with high confidence.",
        "Leave `escape` at true, or add an option for the rest.",
        offering.no_escape,
    ),
    Fault(
        "two-escapes",
        "What fits no other option is divided between the two, and neither is sure.",
        "Set `escape` to false, or leave your own option out.",
        offering.two_escapes,
    ),
    Fault(
        "choice-of-yes-no",
        "A choice has a third answer, and no single probability of yes to set a threshold on.",
        "Ask a `noul`.",
        offering.choice_of_yes_no,
    ),
    Fault(
        "levels-out-of-order",
        "The answer is the mean of the levels' places, which an order by mistake makes wrong.",
        "List the levels from the lowest to the highest.",
        scales.out_of_order,
    ),
    Fault(
        "level-gap",
        "What falls between two levels fits neither, and equal steps of the score are not equal.",
        "Let the levels follow on each other with even steps.",
        scales.gap,
    ),
    Fault(
        "duplicate-level",
        "Levels that cannot be told apart divide one probability by chance.",
        "Join them, or say what is more in the higher one.",
        scales.duplicate_level,
    ),
    Fault(
        "bare-levels",
        "Everybody has another idea of what a 3 is.",
        "Say in words what has to be so for each level.",
        scales.bare_levels,
    ),
    Fault(
        "contradicted-bounds",
        "What the words ask for is refused by the fields, and counts as no answer.",
        "Let the instructions and the fields name the same bounds.",
        bounds.contradicted,
    ),
    Fault(
        "refused-null",
        "A null counts as no answer, with a confidence of 0.",
        "Set `nullable` to true.",
        bounds.refused_null,
    ),
    Fault(
        "idle-threshold",
        "Every answer reaches it, so that nothing is ever held back.",
        "Choose it by `/v1/calibration`, or leave it out.",
        bounds.idle_threshold,
    ),
    Fault(
        "unreachable-threshold",
        "Hardly an answer reaches it, so that nearly everything is held back.",
        "Choose it by `/v1/calibration`; 0.9 is a usual start.",
        bounds.unreachable_threshold,
    ),
    Fault(
        "one-sided-examples",
        "A model learns from them that this is the usual answer.",
        "Show at least two different answers, best a close case of each.",
        examples.one_sided,
    ),
    Fault(
        "contradicting-examples",
        "Whichever of the two a model follows, it contradicts the other.",
        "Keep the label that is true, or put into the state what makes the difference.",
        examples.contradicting,
    ),
    Fault(
        "unmentioned-dependency",
        "The earlier answer stands in the prompt without a word on what it is for.",
        "Say how the earlier answer counts, or leave `depends_on` out and save a stage.",
        links.unmentioned_dependency,
    ),
    Fault(
        "impossible-condition",
        "The condition never holds, so that the question or the rule is never used.",
        "Name an answer as the other question gives it: an option key, a level's index, true.",
        links.impossible_condition,
    ),
    Fault(
        "repeated-question",
        "It costs tokens a second time, and its two answers can differ.",
        "Ask it once.",
        links.repeated_question,
    ),
)
FAULTS = {fault.code: fault for fault in _ALL}
