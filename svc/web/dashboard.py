"""`GET /dashboard` and `GET /`: one page, put together from its files, that needs no other."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache

from flask import Blueprint, Response, render_template

from svc import assets
from svc.jsontext import JsonObject
from svc.questions import TYPES
from svc.shapes import TEXT
from svc.web.decorators import open_to_all, response

_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


def blueprint() -> Blueprint:
    """The route that serves the page to everybody: it holds no data."""
    routes = Blueprint("dashboard", __name__, template_folder=assets.folder("templates"))

    @cache
    def page() -> tuple[str, str]:
        """The page with its files inline, and the policy that allows nothing else."""
        icon = base64.b64encode(_static("favicon.svg").encode()).decode()
        text = render_template(
            "dashboard.html", static=_static, icon=icon, types=_types(), recipes=assets.recipes()
        )
        return text, _policy(text)

    def shown() -> Response:
        text, policy = page()
        return Response(text, mimetype="text/html", headers={"content-security-policy": policy})

    @routes.get("/dashboard")
    @response(TEXT, media=("text/html",), headers=("Content-Security-Policy",))
    @open_to_all
    def dashboard() -> Response:
        """Show metrics, decisions, calibration and drift in a browser.

        The page holds no data: its user enters a key, with which it reads the other routes.
        """
        return shown()

    @routes.get("/")
    @response(TEXT, media=("text/html",), headers=("Content-Security-Policy",))
    @open_to_all
    def start_page() -> Response:
        """Show the dashboard, for who enters the server's address alone."""
        return shown()

    return routes


def _static(name: str) -> str:
    return (assets.folder("static") / name).read_text("utf-8")


def _types() -> dict[str, JsonObject]:
    """What the page needs to know of each question type: where its answer is, how to draw it."""
    kinds = {name: schema.model for name, schema in TYPES.items()}
    return {
        name: {
            "field": kind.answer_schema["required"][0],
            "display": kind.display,
            "calibrates": kind.calibrates,
        }
        for name, kind in kinds.items()
    }


def _policy(page: str) -> str:
    """The policy: only these files run, they contact only this server, no text becomes markup."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(page, 'script')}",
            f"style-src {_hashes(page, 'style')}",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hashes(page: str, element: str) -> str:
    texts = (text for name, text in _INLINE.findall(page) if name == element)
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
