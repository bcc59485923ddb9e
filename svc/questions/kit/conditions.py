"""Conditions on the state's fields and on earlier answers: what `when` and `rules` are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any

from marshmallow import ValidationError

from svc import limits
from svc.jsontext import JsonObject, Literal, dumps, finite, nests_deeper
from svc.phrases import quoted
from svc.questions.kit.fields import Described, amount
from svc.shapes import Json, Named, array, mapping, record

# A field name that starts with it reads another question's answer.
ANSWER_MARK = "@"
_MISSING = object()
# Numbers that no float holds are compared by their value up to so many characters, and then by
# their text: what an any_of compares would take long otherwise.
_COMPARED_CHARS = 40
# CPython looks for a text of under 100 characters in one of under the second figure in a time that
# grows with the product of both, else with their sum (Objects/stringlib/fastsearch.h). Up to the
# first figure that does not matter.
_SEARCHED_AT_ONCE = 2_500
_SEARCHED_IN_STEPS = 30_000
# As many characters one becomes at most once case is folded.
_FOLDED_CHARS = 3


class ConditionValues(JsonObject):
    """What conditions test: state fields, and answers under their `@key`.

    A value is casefolded once, however many conditions look into it: none changes once it is there.
    """

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(values)
        self._folded: dict[str, str | frozenset[str]] = {}
        self._found: dict[tuple[str, str], bool] = {}

    def folded(self, field: str) -> str | frozenset[str]:
        """A text, or the texts in a list, to find lower case in; nothing for any other value."""
        if field not in self._folded:
            value = self.get(field)
            if isinstance(value, str):
                self._folded[field] = _searchable(value.casefold())
            else:
                texts = value if isinstance(value, list) else ()
                self._folded[field] = frozenset(
                    text.casefold() for text in texts if isinstance(text, str)
                )
        return self._folded[field]

    def contains(self, field: str, operand: str) -> bool:
        """Whether a text holds `operand`, or a list has it as an element, in upper or lower case.

        Many conditions may ask the same, and the answer is looked for once.
        """
        asked = field, operand.casefold()
        if asked not in self._found:
            self._found[asked] = asked[1] in self.folded(field)
        return self._found[asked]


def _searchable(folded: str) -> str:
    """A text as long as CPython needs it; what is added is in upper case, and never found."""
    if len(folded) <= _SEARCHED_AT_ONCE:
        return folded
    return folded.ljust(_SEARCHED_IN_STEPS, "A")


@dataclass(frozen=True, slots=True)
class Condition:
    """One test of one field."""

    field: str
    operator: str
    operand: Any

    @property
    def text(self) -> str:
        """The condition as text, which counts towards the limit of a request's questions."""
        return self.field + dumps(self.operand)

    @property
    def question(self) -> str | None:
        """The key of the question whose answer is tested, None for a field of the state."""
        return self.field[1:] if self.field.startswith(ANSWER_MARK) else None

    def holds(self, values: ConditionValues) -> bool:
        """Whether the test passes for `values`."""
        value = values.get(self.field, _MISSING)
        if self.operator == "exists":
            return (value is not _MISSING) is self.operand
        if self.operator == "contains":
            return values.contains(self.field, self.operand)
        return value is not _MISSING and OPERATORS[self.operator](value, self.operand)


@dataclass(frozen=True, slots=True)
class Rule:
    """An answer that is given without asking a model when all conditions hold."""

    conditions: tuple[Condition, ...]
    answer: Any

    def holds(self, values: ConditionValues) -> bool:
        return all(condition.holds(values) for condition in self.conditions)


# What is looked for in a field, in lower case.
Search = tuple[str, str]


def searches(conditions: Iterable[Condition]) -> frozenset[Search]:
    """What all `contains` look for in the state, in which fields."""
    looking = (one for one in conditions if one.operator == "contains" and one.question is None)
    return frozenset((one.field, one.operand.casefold()) for one in looking)


def check_search(fields: Mapping[str, Any], wanted: Sequence[frozenset[Search]]) -> None:
    """Raise `ValidationError` where all that is wanted looks through too much of a state."""
    # Most often a glance is enough, which costs the rows of a job little.
    longest = max((len(one) for one in fields.values() if isinstance(one, str)), default=0)
    if sum(map(len, wanted)) * longest * _FOLDED_CHARS <= limits.SEARCHED_CHARS:
        return
    asked = Counter(field for field, _ in frozenset[Search]().union(*wanted))
    texts = {field: value for field in asked if isinstance(value := fields.get(field), str)}
    chars = sum(asked[field] * len(text.casefold()) for field, text in texts.items())
    if chars > limits.SEARCHED_CHARS:
        raise ValidationError(
            f"have rules whose contains look through more than {limits.SEARCHED_CHARS:,} "
            "characters of text, counted for each condition"
        )


def equal(value: Any, other: Any) -> bool:
    """JSON equality with type: 1 equals 1.0, never true."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(equal, value, other))
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(equal(value[key], other[key]) for key in value)
    return bool(value == other) or _is_same_number(value, other)


def _is_same_number(value: Any, other: Any) -> bool:
    """Whether two numbers, of which one may be no float, are written differently alone."""
    if not (isinstance(value, Literal) or isinstance(other, Literal)):
        return False
    texts = [str(one) for one in (value, other) if isinstance(one, (Literal, int, float))]
    if len(texts) < 2 or max(map(len, texts)) > _COMPARED_CHARS:
        return False
    try:
        return Decimal(texts[0]) == Decimal(texts[1])
    except InvalidOperation:
        # An exponent that is no number's.
        return False


def _starts_with(value: Any, operand: str) -> bool:
    return isinstance(value, str) and value.startswith(operand)


def _comparing(compare: Callable[[float, float], bool]) -> Callable[[Any, float], bool]:
    def test(value: Any, operand: float) -> bool:
        number = float(value) if isinstance(value, Literal) else finite(value)
        return number is not None and compare(number, operand)

    return test


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": equal,
    "any_of": lambda value, operand: any(equal(value, one) for one in operand),
    "starts_with": _starts_with,
    "gt": _comparing(lambda value, operand: value > operand),
    "gte": _comparing(lambda value, operand: value >= operand),
    "lt": _comparing(lambda value, operand: value < operand),
    "lte": _comparing(lambda value, operand: value <= operand),
}
_TEXT, _NUMBER, _BOOLEAN = "text", "a number", "true or false"
COMPARING = ("gt", "gte", "lt", "lte")
OPERANDS = {
    "contains": _TEXT,
    "starts_with": _TEXT,
    **dict.fromkeys(COMPARING, _NUMBER),
    "exists": _BOOLEAN,
}
_JSON_TYPES = {_TEXT: "string", _NUMBER: "number", _BOOLEAN: "boolean"}
_SIMPLE = ["string", "number", "boolean", "null"]
CONDITION = Named(
    "Condition",
    {
        "description": "A value to equal, a list of values to be one of, or an operator.",
        "anyOf": [
            {"type": _SIMPLE},
            array({}),
            record(
                {},
                {name: {"type": _JSON_TYPES[kind]} for name, kind in OPERANDS.items()},
                minProperties=1,
                maxProperties=1,
                additionalProperties=False,
            ),
        ],
    },
)


class When(Described[tuple[Condition, ...]]):
    """An object of field name to a value, or to a list of values of which one must match."""

    form = {**mapping({"anyOf": [{"type": _SIMPLE}, array({})]}), "minProperties": 1}  # noqa: RUF012

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[Condition, ...]:
        if not isinstance(value, Mapping) or not value:
            raise ValidationError("must be an object of state field to value or list of values")
        operators = [quoted(name) for name, wanted in value.items() if isinstance(wanted, dict)]
        if operators:
            raise ValidationError(
                f"{operators[0]} must be a value or a list of values; operators belong in rules"
            )
        return tuple(_condition(name, wanted) for name, wanted in value.items())


class Rules(Described[tuple[Rule, ...]]):
    """A list of `{if: {field: condition}, answer: label}`."""

    def json_schema(self) -> Json:
        rule = {"if": mapping(CONDITION), "answer": self.parent.label}
        rules = array(record(rule, additionalProperties=False), 0, limits.RULES)
        return {**rules, **super().json_schema()}

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[Rule, ...]:
        if not isinstance(value, list):
            raise ValidationError("must be a list of objects {if, answer}")
        amount(len(value), (0, limits.RULES), "rules")
        return tuple(_rule(index, rule) for index, rule in enumerate(value))


def _rule(index: int, rule: Any) -> Rule:
    if not isinstance(rule, Mapping) or rule.keys() != {"if", "answer"}:
        raise ValidationError(f"rule {index} must be an object with if and answer")
    if not isinstance(rule["if"], Mapping):
        raise ValidationError(f"rule {index}: if must be an object of field to condition")
    try:
        conditions = tuple(_condition(name, wanted) for name, wanted in rule["if"].items())
    except ValidationError as error:
        raise ValidationError(f"rule {index}: {error.messages[0]}") from None
    return Rule(conditions, rule["answer"])


def _condition(name: str, wanted: Any) -> Condition:
    if nests_deeper(wanted, limits.NESTING):
        raise ValidationError(f"{quoted(name)} is nested more than {limits.NESTING} levels deep")
    if isinstance(wanted, list):
        return Condition(name, "any_of", wanted)
    if not isinstance(wanted, Mapping):
        return Condition(name, "equals", wanted)
    allowed = ", ".join(OPERANDS)
    if len(wanted) != 1:
        raise ValidationError(f"{quoted(name)} needs exactly one operator of {allowed}")
    ((operator, operand),) = wanted.items()
    if operator not in OPERANDS:
        raise ValidationError(
            f"{quoted(name)} has the unknown operator {quoted(operator)}; allowed: {allowed}"
        )
    if not _fits(operand, OPERANDS[operator]):
        raise ValidationError(f"{quoted(name)} {operator} must be {OPERANDS[operator]}")
    return Condition(name, operator, finite(operand) if operator in COMPARING else operand)


def _fits(operand: Any, kind: str) -> bool:
    if kind == _NUMBER:
        return finite(operand) is not None
    return isinstance(operand, str if kind == _TEXT else bool)
