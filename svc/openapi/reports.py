"""What the routes beside the decisions answer."""

from __future__ import annotations

from svc import limits
from svc.openapi.answers import CONFIG, DECISION_ID, MODES
from svc.openapi.shapes import (
    COUNT,
    FLAG,
    PROBABILITY,
    TEXT,
    Json,
    array,
    described,
    mapping,
    nullable,
    record,
    ref,
)
from svc.stats.scores import AUTOMATE_FROM, BINS

NUMBER: Json = {"type": "number"}
SHARE = nullable(PROBABILITY)
HASH: Json = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
LABELS_SO_FAR = {
    "labels": described(COUNT, "Labels collected for this exact question in the project."),
    "min_labels": {"const": limits.MIN_LABELS, "description": "Labels before a first fit."},
}


def schemas() -> Json:
    """The components of feedback, reports, listings and health."""
    return {**_learning(), **_drift(), **_audit(), **_operation()}


def _learning() -> Json:
    feedback = {
        "decision_id": DECISION_ID,
        "question": TEXT,
        **LABELS_SO_FAR,
        "calibrated": described(FLAG, "Whether a calibrator is in effect for the question."),
    }
    report = {
        "project": TEXT,
        "question": TEXT,
        "type": described(TEXT, "The question's type."),
        **LABELS_SO_FAR,
        "calibrator": nullable(ref("Calibrator")),
        "before": described(ref("Scores"), "Of the raw probabilities."),
        "after": described(
            ref("Scores"),
            "Held out: each half of the labels calibrated by a fit on the other half.",
        ),
        "thresholds": array(ref("Threshold")),
    }
    return {
        "FeedbackResponse": record(feedback),
        "CalibrationReport": record(report),
        "Calibrator": {"oneOf": [ref("Temperature"), ref("Platt")]},
        "Temperature": record(
            {"kind": {"const": "temperature"}, "t": NUMBER},
            description="Of choice and score: p' is p^(1/t), normalised.",
        ),
        "Platt": record(
            {"kind": {"const": "platt"}, "a": NUMBER, "b": NUMBER},
            description="Of all others: p' is the logistic function of a·logit(p) + b.",
        ),
        "Scores": _scores(),
        "ReliabilityBin": _reliability_bin(),
        "Threshold": _threshold(),
    }


def _scores() -> Json:
    figures = {
        "accuracy": SHARE,
        "ece": described(SHARE, "Expected calibration error."),
        "brier": nullable(NUMBER),
        "automated": described(SHARE, f"The share with a confidence of {AUTOMATE_FROM} or more."),
        "accuracy_when_automated": SHARE,
        "bins": array(ref("ReliabilityBin"), BINS, BINS),
    }
    return record(figures, description="Null where there are no labels to say it.")


def _reliability_bin() -> Json:
    return record(
        {
            "from": PROBABILITY,
            "to": PROBABILITY,
            "count": COUNT,
            "confidence": described(SHARE, "The mean confidence of the answers in it."),
            "accuracy": described(SHARE, "The share of them that were right."),
        }
    )


def _threshold() -> Json:
    return record(
        {
            "target": described(PROBABILITY, "The accuracy that is wanted."),
            "min_confidence": described(
                SHARE, "From here on that accuracy is promised, with 95% certainty."
            ),
            "automated": described(SHARE, "The share of answers that reach it."),
            "reason": described(nullable(TEXT), "Why there is no such threshold."),
        }
    )


def _drift() -> Json:
    week = {
        "week": {"type": "string", "pattern": "^[0-9]{4}-W[0-9]{2}$", "description": "ISO, UTC."},
        "decisions": COUNT,
        "mix": {
            **nullable(mapping(PROBABILITY)),
            "description": "The share of each top answer; null for extracted values.",
        },
        "confidence": described(PROBABILITY, "The mean raw probability of the top answer."),
    }
    latest = {
        "mix_change": described(SHARE, "Total-variation distance from the earlier mean mix."),
        "confidence_change": nullable(NUMBER),
        "drift": described(FLAG, "Whether either has moved further than it may."),
    }
    report = {"project": TEXT, "question": TEXT, "weeks": array(ref("DriftWeek"))}
    return {
        "DriftReport": record(report, description="Oldest week first; weeks without are left out."),
        "DriftWeek": record(week, latest, description="The latest week has the changes as well."),
    }


def _audit() -> Json:
    entry = {
        "id": DECISION_ID,
        "created_at": described(COUNT, "Milliseconds since the epoch."),
        "project": TEXT,
        "api_key": described(nullable(TEXT), "The id of the key, where there are keys."),
        "state_hash": described(HASH, "Salted SHA-256 of the state, which itself is not kept."),
        "model": TEXT,
        "mode": MODES,
        "config": CONFIG,
        "privacy": {"type": "string", "enum": ["standard", "strict"]},
        "latency_ms": {"type": "number", "minimum": 0},
        "cost_usd": {"type": "number", "minimum": 0},
        "cached": FLAG,
        "answers": described(
            mapping({"anyOf": [ref("Answer"), ref("CriteriaAnswer")]}),
            "As returned, without extracted values under `privacy: strict`.",
        ),
    }
    images = {"images": described(array(HASH), "Salted SHA-256 of each image as sent.")}
    page = {
        "project": TEXT,
        "entries": array(ref("AuditEntry"), 0, limits.AUDIT_PAGE[1]),
        "next_before": described(nullable(DECISION_ID), "`before` of the next page, if any."),
    }
    return {"AuditEntry": record(entry, images), "AuditPage": record(page)}


def _operation() -> Json:
    date = {"type": "string", "format": "date"}
    config = {"name": TEXT, "description": TEXT, "release_date": date}
    health = {"status": {"const": "ok"}, "version": TEXT}
    return {
        "Config": record(config),
        "ConfigList": record({"models": array(ref("Config"))}),
        "Health": record(health),
    }
