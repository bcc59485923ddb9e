"""`GET /dashboard`: one page, put together from its files, that needs no other request."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache

from flask import Blueprint, Response

from svc import assets
from svc.shapes import TEXT
from svc.web.described import open_to_all, response

_STYLE = re.compile(r'<link rel="stylesheet" href="([\w.]+)">')
_SCRIPT = re.compile(r'<script src="([\w.]+)"></script>')
_DATA = re.compile(r'(<script type="application/json" id="\w+") src="([\w.]+)">')
_ICON = re.compile(r'(<link rel="icon" href=")([\w.]+)"')


def blueprint() -> Blueprint:
    """The route that serves the page to everybody: it holds no data."""
    routes = Blueprint("dashboard", __name__)

    @routes.get("/dashboard")
    @response(TEXT, media=("text/html",), headers=("Content-Security-Policy",))
    @open_to_all
    def dashboard() -> Response:
        """Show metrics, decisions, calibration and drift in a browser.

        The page holds no data: it asks for a key and reads the other routes with it.
        """
        page, policy = _page()
        headers = {"content-security-policy": policy}
        return Response(page, mimetype="text/html", headers=headers)

    return routes


@cache
def _page() -> tuple[str, str]:
    """The page with what it refers to put inline, and the policy that allows nothing else."""
    page = (assets.folder("templates") / "dashboard.html").read_text("utf-8")
    policy = _policy(_files(_SCRIPT, page), _files(_STYLE, page))
    page = _STYLE.sub(lambda link: f"<style>{_static(link[1])}</style>", page)
    page = _SCRIPT.sub(lambda script: f"<script>{_static(script[1])}</script>", page)
    page = _DATA.sub(lambda data: f"{data[1]}>{_example(data[2])}", page)
    return _ICON.sub(lambda icon: f'{icon[1]}{_data_uri(icon[2])}"', page), policy


def _policy(scripts: list[str], styles: list[str]) -> str:
    """Only these files run, by their hashes; only this server is asked; no text becomes markup."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(scripts)}",
            f"style-src {_hashes(styles)}",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _files(reference: re.Pattern[str], page: str) -> list[str]:
    return [_static(name) for name in reference.findall(page)]


def _hashes(texts: list[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _static(name: str) -> str:
    return (assets.folder("static") / name).read_text("utf-8")


def _example(name: str) -> str:
    return (assets.folder("templates") / name).read_text("utf-8")


def _data_uri(name: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(_static(name).encode()).decode()}"
