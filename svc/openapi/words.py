"""What request fields mean, in words: where the limits come from `svc.limits` they stand there."""

from __future__ import annotations

from svc import limits
from svc.openapi.shapes import Json
from svc.pins import LATEST, NEWEST, PINS
from svc.schemas.decision import DEFAULT_PROJECT

REQUEST = {
    "state": (
        "The input to judge: text, an object, or any other JSON. At most "
        f"{limits.STATE_CHARS:,} characters; of a state that is no text, those of its compact JSON."
    ),
    "questions": (
        f"1 to {limits.QUESTIONS} questions by keys of your own, which the answers come under, in "
        "this order. Keys never reach a model. All texts of the questions together: at most "
        f"{limits.QUESTION_TEXT_CHARS:,} characters."
    ),
    "model": (
        "Which models answer. Without it: the model of the config, or the server's default model. "
        f"At most {limits.MODEL_CALLS} model calls a request."
    ),
    "mode": (
        "Where probabilities come from: the log-probabilities of the model's tokens, or a JSON "
        "reply in which the model states them. `auto` tries the first, then the second. `logprobs` "
        "cannot answer text, number and integer questions, choices of over "
        f"{limits.LOGPROBS_OPTIONS} options, or anything with `think`."
    ),
    "debias": (
        "`true` asks in the original and in the reversed order of options and averages; `false` "
        'halves the calls; `"auto"` leaves the reversed order out once the last '
        f"{limits.DEBIAS_PAIRS} pairs have shown that it makes no difference."
    ),
    "think": "Let the model reason briefly before it answers; always in verbal mode.",
    "project": (
        "The calibration namespace: feedback and calibrators are kept per project. Without it and "
        "with a key of one project: that project."
    ),
    "config": "The pinned prompt and defaults to use; `svc-latest` is the operator's choice.",
    "privacy": (
        "`strict` allows only providers that neither store prompts nor train on them, and keeps "
        "extracted values out of the audit log."
    ),
    "explain": (
        "Add to each answer by how much its probability drops without each of at most "
        f"{limits.EXPLAIN_FIELDS} top-level fields of an object state; one more call a field. "
        "Not together with `depends_on`."
    ),
    "images": (
        f"Up to {limits.IMAGES} images: `https://` addresses of at most "
        f"{limits.IMAGE_URL_CHARS:,} characters, which the provider fetches, or base64 data URIs "
        f"of at most {limits.IMAGE_BYTES // 1024**2} MB decoded."
    ),
}

FEEDBACK = {
    "decision_id": "The `id` of the decision.",
    "question": "The key of the question in that decision.",
    "label": (
        "The true answer: an option key (choice), a level index (score), true or false (noul), "
        "a list of option keys (multi), or the value (text, number, integer; null only where the "
        "question is nullable)."
    ),
}

QUESTION = {
    "type": "The type of the question.",
    "instructions": "The question in plain words.",
    "think": "Let the model reason about this question in a verbal call of its own.",
    "when": (
        "Ask only when every field named here has this value, or one of these values; otherwise "
        'the answer is `{"skipped": true}`. A field is a top-level field of an object state, or '
        "`@key`, the answer to question `key`, which has to be answered first then."
    ),
    "rules": (
        f"Up to {limits.RULES} rules: the first whose conditions all hold gives the answer, with "
        "no model call. Fields are named as in `when`."
    ),
    "depends_on": (
        "Keys of questions that are answered first and whose answers this one sees; at most "
        f"{limits.STAGES} stages in all."
    ),
    "options": (
        "Option key to description, which may be empty; the key `none_of_these` is reserved while "
        f"`escape` is true. Over {limits.LOGPROBS_OPTIONS} options are asked in verbal mode."
    ),
    "escape": "Add the option `none_of_these`.",
    "levels": "Descriptions of the levels, lowest first.",
    "min_confidence": "The answer has `abstain: true` when its confidence is below this.",
    "coverage": (
        "The probability with which `set` is to hold the true answer; it takes "
        f"{limits.MIN_LABELS} labels for this exact question."
    ),
    "threshold": "Options with at least this probability are selected.",
    "max_length": "The most characters of the value.",
    "min": "The lowest value allowed.",
    "max": "The highest value allowed; not below `min`.",
    "nullable": "Let the value be null when the state has none.",
    "examples": f"Up to {limits.EXAMPLES} states with their true answers, shown to the model.",
}

# Where a field of one type means something of its own.
OF_TYPE = {
    ("multi", "options"): "Option key to description, which may be empty; each is a yes or no.",
    ("multi", "coverage"): (
        "Accepted and echoed, with `guaranteed: false`: feedback labels a multi as a whole."
    ),
}

# Defaults that a config decides; every other one stands in the frozen request and questions.
DEFAULTS: Json = {
    "mode": PINS[NEWEST].mode,
    "debias": PINS[NEWEST].debias,
    "project": DEFAULT_PROJECT,
    "config": LATEST,
}
