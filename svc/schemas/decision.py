"""The body of `POST /v1/decide`, checked into a frozen `DecisionRequest`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeVar

from marshmallow import Schema, ValidationError, post_load, validates_schema

from svc import jsontext, limits
from svc.engine.plans import Plan
from svc.errors import InvalidJson, InvalidRequest, UnknownMode
from svc.memo import Memo
from svc.names import UnsoundName, project_name
from svc.phrases import quoted
from svc.pins import LATEST, NEWEST, PINS
from svc.questions import (
    NAMES,
    TYPES,
    Described,
    FlagField,
    Question,
    UnsoundDependency,
    WordsField,
    amount,
    check_search,
    stages,
)
from svc.schemas.images import Images
from svc.schemas.loading import load, refuse_many_unknown
from svc.schemas.messages import describe
from svc.schemas.plan import PlanField
from svc.schemas.references import RefField, TagsField
from svc.shapes import FLAG, NO_CONTROL, VISIBLE, Named, mapping, one_of, one_of_types
from svc.terms import Mode, Privacy

T = TypeVar("T")

MODES = tuple(mode.value for mode in Mode)
DEFAULT_PROJECT = "default"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class State:
    """The input: `text` as models see it, and the `fields` of an object, None for other JSON."""

    text: str
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """A checked request; None stands for what the config or the server decides.

    `stages` holds the question keys of each stage, where a later one waits for the earlier ones.
    `debias` is True, False or "auto". With `partly`, questions that no model can answer are refused
    where others are answered.
    """

    state: State
    questions: Mapping[str, Question]
    stages: tuple[tuple[str, ...], ...]
    plan: Plan | None = None
    mode: Mode | None = None
    debias: bool | str | None = None
    think: bool = False
    project: str | None = None
    config: str | None = None
    privacy: Privacy = Privacy.STANDARD
    explain: bool = False
    images: tuple[str, ...] = ()
    ref: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    partly: bool = False


class ModeField(Described[Mode]):
    """`auto`, `logprobs` or `verbal`."""

    form = one_of(MODES)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Mode:
        if value not in MODES:
            error = f"unknown mode {quoted(value)}" if isinstance(value, str) else "mode is no text"
            raise UnknownMode(f"{error}; allowed: {', '.join(MODES)}")
        return Mode(value)


class OneOf(Described[str]):
    """One of a few names."""

    def __init__(self, names: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.names = names
        self.form = one_of(names)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str) or value not in self.names:
            name = f" {quoted(value)}" if isinstance(value, str) else ""
            raise ValidationError(f"unknown {self.name}{name}; allowed: {', '.join(self.names)}")
        return value


class PrivacyField(OneOf):
    """`standard` or `strict`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Privacy:
        return Privacy(super()._deserialize(value, attr, data, **kwargs))


class DebiasField(Described[bool | str]):
    """`true`, `false` or `"auto"`."""

    form = {"anyOf": [FLAG, {"const": "auto"}]}  # noqa: RUF012

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool | str:
        if isinstance(value, bool) or value == "auto":
            return value  # type: ignore[no-any-return]
        raise ValidationError('must be true, false or "auto"')


class StateField(Described[State]):
    """Any JSON value, null included."""

    form = {"maxLength": limits.STATE_CHARS}  # noqa: RUF012

    def deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return State("null") if value is None else super().deserialize(value, *args, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> State:
        try:
            text = jsontext.as_text(value)
        except RecursionError:
            raise ValidationError("is nested too deeply") from None
        if len(text) > limits.STATE_CHARS:
            raise ValidationError(
                f"has {len(text):,} characters, at most {limits.STATE_CHARS:,} are allowed"
            )
        return State(text, value if isinstance(value, dict) else None)


class ProjectField(WordsField):
    """The name of a calibration namespace, in normal form."""

    form = {  # noqa: RUF012
        "type": "string",
        "pattern": f"^{NO_CONTROL}*{VISIBLE}{NO_CONTROL}*$",
        "maxLength": limits.PROJECT_CHARS,
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        try:
            return project_name(super()._deserialize(value, attr, data, **kwargs))
        except UnsoundName as error:
            raise ValidationError(str(error)) from None


class QuestionsField(Described[Mapping[str, Question]]):
    """The questions, by the caller's keys, in the caller's order."""

    def __init__(self, question: Callable[[], Named], most: int = limits.QUESTIONS) -> None:
        """`question` gives the JSON schema of a question of any type; `most` are allowed."""
        self.most = most
        super().__init__(
            f"1 to {most:,} questions by keys of your own, which the answers come under, "
            "in this order. Keys never reach a model. All texts of the questions together: at most "
            f"{limits.QUESTION_TEXT_CHARS:,} characters.",
            required=True,
        )
        self.form = {
            **mapping(question),
            "propertyNames": {"pattern": f"^{NO_CONTROL}+$"},
            "minProperties": 1,
            "maxProperties": most,
        }

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> Mapping[str, Question]:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object of question key to question")
        amount(len(value), (1, self.most), "questions")
        # Callers often ask the same questions about many states, so checked questions are kept.
        return _checked(value)


def questions_text(questions: Any) -> str:
    """Questions as JSON. Raises `ValidationError` where it nests too deeply or is too long."""
    try:
        text = jsontext.dumps(questions)
    except RecursionError:
        raise ValidationError("are nested too deeply") from None
    if len(text) > limits.QUESTIONS_JSON_CHARS:
        raise ValidationError(
            f"have {len(text):,} characters as JSON, at most {limits.QUESTIONS_JSON_CHARS:,} "
            "are allowed"
        )
    return text


def any_question() -> Named:
    """The JSON schema of a question of any type."""
    names = {kind: schema.component for kind, schema in NAMES.items()}
    return Named("Question", one_of_types(dict(TYPES), names))


def remembering(check: Callable[[Any], T]) -> Callable[[Any], T]:
    """Give what `check` makes of questions, or has made of the same ones before.

    Raises `ValidationError`, also where they nest too deeply or are too long.
    """
    made = Memo(lambda text: check(jsontext.loads(text.encode())))
    return lambda questions: made(questions_text(questions))


@remembering
def _checked(bodies: Mapping[str, Any]) -> Mapping[str, Question]:
    return MappingProxyType(_load_each(bodies))


def _load_each(bodies: Mapping[str, Any]) -> dict[str, Question]:
    questions, errors = {}, {}
    for key, body in bodies.items():
        try:
            questions[key] = _load_question(key, body)
        except ValidationError as error:
            errors[key] = error.messages
    if errors:
        raise ValidationError(errors)
    check_size(questions)
    return questions


def _load_question(key: str, body: Any) -> Question:
    if not key or _CONTROL.search(key):
        raise ValidationError("a question key must not be empty or hold control characters")
    if not isinstance(body, Mapping):
        raise ValidationError("must be an object")
    kind = body.get("type")
    if kind is None:
        raise ValidationError({"type": [f"is missing; allowed: {', '.join(TYPES)}"]})
    if not isinstance(kind, str) or kind not in NAMES:
        name = f" {quoted(kind)}" if isinstance(kind, str) else ""
        raise InvalidJson(
            f"question {quoted(key)}: unknown type{name}; allowed: {', '.join(TYPES)}"
        )
    refuse_many_unknown(NAMES[kind], body)
    question: Question = NAMES[kind].load(body)
    return question


def check_size(questions: Mapping[str, Question]) -> None:
    """Raise `ValidationError` for too many conditions or options, or too long texts, of all."""
    conditions = sum(len(question.conditions) for question in questions.values())
    if conditions > limits.CONDITIONS:
        raise ValidationError(
            f"hold {conditions:,} conditions, at most {limits.CONDITIONS:,} are allowed"
        )
    options = sum(len(question.option_names) for question in questions.values())
    if options > limits.ALL_OPTIONS:
        raise ValidationError(
            f"hold {options:,} options, at most {limits.ALL_OPTIONS:,} are allowed"
        )
    total = sum(len(key) + sum(map(len, question.texts)) for key, question in questions.items())
    if total > limits.QUESTION_TEXT_CHARS:
        raise ValidationError(
            f"hold {total:,} characters of text, at most {limits.QUESTION_TEXT_CHARS:,} are allowed"
        )


class DecisionRequestSchema(Schema):
    """Typed questions about a state, and how they are to be answered."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    state = StateField(
        "The input to judge: text, an object, or any other JSON. At most "
        f"{limits.STATE_CHARS:,} characters; of a state that is no text, those of its compact "
        "JSON.",
        required=True,
    )
    questions = QuestionsField(any_question)
    model = PlanField(
        "Which models answer. Without it: the model of the config, or the server's default model. "
        f"At most {limits.MODEL_CALLS} model calls a request.",
        attribute="plan",
    )
    mode = ModeField(
        "Where probabilities come from: the log-probabilities of the model's tokens, or a JSON "
        "reply in which the model states them. `auto` tries the first, then the second. `logprobs` "
        "cannot answer questions whose value is read from the input, choices of over "
        f"{limits.LOGPROBS_OPTIONS} options, or anything with `think`.",
        default=PINS[NEWEST].mode,
    )
    debias = DebiasField(
        "`true` asks in the original and in the reversed order of options and averages; `false` "
        'halves the calls; `"auto"` leaves the reversed order out once '
        f"{limits.DEBIAS_PAIRS} pairs or more have shown that it makes no difference, or what it "
        "would say.",
        default=PINS[NEWEST].debias,
    )
    think = FlagField(
        "Let the model reason briefly before it answers; always in verbal mode.", default=False
    )
    project = ProjectField(
        "The calibration namespace: feedback and calibrators are kept per project. Without it: "
        f"`{DEFAULT_PROJECT}`, or the project of a key that is for one alone."
    )
    config = OneOf(
        (*PINS, LATEST),
        description=(
            "The pinned prompt and defaults to use; `svc-latest` is the operator's choice."
        ),
        default=LATEST,
    )
    privacy = PrivacyField(
        tuple(privacy.value for privacy in Privacy),
        description=(
            "`strict` allows only providers that neither store prompts nor train on them, and "
            "keeps extracted values out of the audit log."
        ),
        default=Privacy.STANDARD.value,
    )
    explain = FlagField(
        "Add to each answer by how much its probability drops without each of at most "
        f"{limits.EXPLAIN_FIELDS} top-level fields of an object state; one more call a field. "
        f"Their names may have {limits.EXPLAIN_NAMES_CHARS:,} characters, counted for each "
        "question. Not together with `depends_on`.",
        default=False,
    )
    images = Images(
        f"Up to {limits.IMAGES} images: `https://` addresses of at most "
        f"{limits.IMAGE_URL_CHARS:,} characters, which the provider fetches, or base64 data URIs "
        f"of at most {limits.IMAGE_BYTES // 1024**2} MB decoded."
    )

    ref = RefField(
        "Your own id of what is decided about, to find the decision by and to label it. It never "
        "reaches a model, and should hold no personal data: it is kept as it is."
    )
    tags = TagsField(
        f"Up to {limits.TAGS} names with texts, to filter decisions by. They never reach a model, "
        "and are kept as they are."
    )

    @validates_schema(skip_on_field_errors=True)
    def _logprobs_can_answer(self, data: Mapping[str, Any], **_: Any) -> None:
        if data.get("mode") is not Mode.LOGPROBS:
            return
        if data.get("think"):
            raise ValidationError("logprobs cannot be used with think", "mode")
        reasons = {
            key: "a question that thinks is asked verbally"
            if question.think
            else question.verbal_reason
            for key, question in data["questions"].items()
        }
        verbal = {key: reason for key, reason in reasons.items() if reason}
        _raise_for("mode", "logprobs cannot answer this: ", verbal)

    @validates_schema(skip_on_field_errors=True)
    def _conditions_have_an_object(self, data: Mapping[str, Any], **_: Any) -> None:
        check_conditions(data["state"], data["questions"])

    @post_load
    def _freeze(self, data: dict[str, Any], **_: Any) -> Any:
        try:
            data["stages"] = stages(data["questions"])
        except UnsoundDependency as error:
            raise ValidationError({"questions": {error.key: [error.reason]}}) from None
        if data.get("explain"):
            _check_explained(data["state"], data["questions"], data["stages"])
        return DecisionRequest(**data)


def check_conditions(state: State, questions: Mapping[str, Question]) -> None:
    """Raise `ValidationError` where conditions look at a state without fields, or at too much."""
    if state.fields is None:
        keys = [key for key, question in questions.items() if question.needs_object]
        reason = "a state that is an object"
        _raise_for("when or rules", "needs ", dict.fromkeys(keys, reason))
    elif wanted := [one.searches for one in questions.values() if one.searches]:
        try:
            check_search(state.fields, wanted)
        except ValidationError as error:
            raise ValidationError({"questions": error.messages}) from None


def _check_explained(
    state: State, questions: Mapping[str, Question], stages: Sequence[Sequence[str]]
) -> None:
    """Raise `ValidationError` where answers cannot be explained, or would take too much room."""
    if len(stages) > 1:
        raise ValidationError("cannot be used with depends_on", "explain")
    explained = sum(question.reversible for question in questions.values())
    names = islice(state.fields or (), limits.EXPLAIN_FIELDS)
    chars = explained * sum(map(len, names))
    if chars > limits.EXPLAIN_NAMES_CHARS:
        raise ValidationError(
            f"would repeat {chars:,} characters of the state's field names in the answers, at most "
            f"{limits.EXPLAIN_NAMES_CHARS:,} are allowed",
            "explain",
        )


def _raise_for(field: str, words: str, reasons: Mapping[str, str]) -> None:
    """Raise one error that says for each question what is wrong with its `field`."""
    if reasons:
        messages = {key: {field: [words + reason]} for key, reason in reasons.items()}
        raise ValidationError({"questions": messages})


_DECISION = DecisionRequestSchema()
_STATE = StateField()


def load_decision(body: Any) -> DecisionRequest:
    """Check a parsed body of `POST /v1/decide`. Raises `InvalidJson` or `InvalidRequest`."""
    request: DecisionRequest = load(_DECISION, body)
    return request


def with_state(request: DecisionRequest, value: Any) -> DecisionRequest:
    """The same request about another state. Raises `InvalidRequest`."""
    try:
        state = _STATE.deserialize(value)
        check_conditions(state, request.questions)
    except ValidationError as error:
        messages = error.messages if isinstance(error.messages, dict) else {"state": error.messages}
        raise InvalidRequest(describe(messages)) from None
    return replace(request, state=state)


def load_questions(value: Any) -> dict[str, Question]:
    """Check a questions object alone. Raises `InvalidJson` or `InvalidRequest`."""
    return dict(load_decision({"state": {}, "questions": value}).questions)
