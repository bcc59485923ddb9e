"""The rules of axe-core, which finds what keeps people from reading or using a page."""

from __future__ import annotations

from importlib.resources import files

from tests.browser.chromium import Browser

_SCRIPT = (files("axe_core_python") / "axe.min.js").read_text("utf-8")
_FOUND = """return axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`)))"""


def faults(browser: Browser) -> list[str]:
    """What breaks a rule on the page as it stands, each with its element and the reason.

    The script is run by the driver, so that the page's policy has no say in it.
    """
    browser.run(_SCRIPT)
    found: list[str] = browser.run(_FOUND)
    return found
