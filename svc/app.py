"""The Flask application: blueprints, hooks and the error shape around ready services."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Flask

from svc import limits
from svc.bootstrap import Services
from svc.engine.forecast import forecaster
from svc.store import Overview
from svc.web import (
    activity,
    audit,
    auth,
    batch,
    budgets,
    calibration,
    dashboard,
    decide,
    decisions,
    decorators,
    drift,
    error_handlers,
    export,
    feedback,
    forecast,
    hooks,
    job_desk,
    keys,
    label_turns,
    lint,
    models,
    openapi,
    ops,
    projects,
    rates,
    repeats,
    review,
    systemone,
)
from svc.web.dialects import routes as dialects
from svc.web.pages import Pages
from svc.web.readiness import Readiness

MEGABYTE = 1024 * 1024


class Application(Flask):
    """A Flask application in which nothing is asynchronous."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Called by Flask for each function around each request.

        To ask every time whether one is a coroutine takes 2% of a request.
        """
        return func


def create_app(services: Services, deadline_s: float = limits.REQUEST_DEADLINE_S) -> Flask:
    """The WSGI application; `deadline_s` bounds every request, in seconds."""
    app = Application("svc", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = services.settings.max_body_mb * MEGABYTE
    app.url_map.strict_slashes = False
    # Merging slashes would redirect, and callers do not send a body again to another URL.
    app.url_map.merge_slashes = False
    app.extensions["svc"] = services
    offer = services.challenges.offer
    hooks.register(app, deadline_s, services.metrics, offer, traces=services.traces)
    settings, shared = services.settings, services.shared
    rules = (settings.no_auth, settings.require_keys)
    stored = services.decisions.any_of
    decorators.share_rests(shared.rests, shared.company)
    auth.register(app, services.keys, shared.buckets, shared.turns, *rules, stored=stored)
    error_handlers.register(app)
    decided, salt, locks = services.decisions, services.database.salt, shared.named_locks
    repeated = decorators.once(repeats.Repeats(services.kept, decided, locks, salt))
    app.register_blueprint(decide.blueprint(services.core.engine, repeated, decided))
    app.register_blueprint(systemone.blueprint(services.core.engine, repeated))
    app.register_blueprint(dialects.blueprint(services.core.engine, repeated))
    jobs = job_desk.JobDesk(
        services.jobs,
        services.spool,
        shared.bell.ring,
        services.core.engine.check,
        services.batches.settled,
    )
    app.register_blueprint(batch.blueprint(jobs, repeated))
    router, promoted = services.core.router, services.promoted
    asked = partial(forecaster, router, settings.latest_config, promoted=promoted)
    app.register_blueprint(forecast.blueprint(asked))
    app.register_blueprint(
        feedback.blueprint(services.learner, repeated, label_turns.LabelTurns(locks))
    )
    app.register_blueprint(calibration.blueprint(services.reporter))
    app.register_blueprint(drift.blueprint(services.reporter))
    app.register_blueprint(rates.blueprint(services.rates))
    app.register_blueprint(activity.blueprint(services.activity))
    app.register_blueprint(review.blueprint(services.review, services.reviewers))
    pages = Pages(services.decisions, services.versions)
    app.register_blueprint(audit.blueprint(pages))
    app.register_blueprint(export.blueprint(pages, services.labels))
    app.register_blueprint(decisions.blueprint(decided, services.labels, services.versions))
    app.register_blueprint(projects.blueprint(Overview(services.database)))
    app.register_blueprint(lint.blueprint())
    app.register_blueprint(keys.blueprint(services.keys))
    app.register_blueprint(budgets.blueprint(services.budgets))
    app.register_blueprint(models.blueprint(settings.latest_config, settings.model))
    app.register_blueprint(dashboard.blueprint())
    app.register_blueprint(openapi.blueprint())
    app.register_blueprint(ops.blueprint(services.metrics, Readiness(services.checks())))
    return app
