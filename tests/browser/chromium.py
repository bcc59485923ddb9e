"""A real Chromium, driven over WebDriver, and what it saw of a page."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

T = TypeVar("T")
WAIT_S = 20.0  # seconds for something to appear, on a busy machine
POLL_S = 0.05  # seconds between two looks
SCREENSHOTS = Path(__file__).parents[2] / "build/screenshots"
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # which a container's root cannot have
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
)
NAMES = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "driver": ("chromedriver",)}


def program(kind: str) -> str:
    """The path of Chromium or of its driver; without it these tests fail, they do not skip."""
    found = next(filter(None, map(shutil.which, NAMES[kind])), None)
    assert found, f"no {kind}; on Debian: apt-get install chromium chromium-driver"
    return found


class Browser:
    """A context manager around one window; `open` begins anew, with nothing in its storage."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = program("chromium")
        for argument in ARGUMENTS:
            options.add_argument(argument)
        self._folder = tempfile.TemporaryDirectory()
        self.downloads = Path(self._folder.name)
        prefs = {"download.default_directory": str(self.downloads)}
        options.add_experimental_option("prefs", prefs)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self._options, self._service = options, Service(program("driver"))

    def __enter__(self) -> Self:
        self._driver = webdriver.Chrome(self._options, self._service)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._driver.quit()
        self._folder.cleanup()

    def open(self, url: str, view: str = "", *, width: int = 1200, dark: bool = False) -> None:
        """Load the dashboard of the server at `url` in a new tab, at `#/<view>`."""
        self.visit(f"{url}/dashboard#/{view}", width=width, dark=dark)

    def visit(self, address: str, *, width: int = 1200, dark: bool = False) -> None:
        """Load a page in a new tab."""
        old = self._driver.current_window_handle
        self._driver.switch_to.new_window("tab")
        new = self._driver.current_window_handle
        self._driver.switch_to.window(old)
        self._driver.close()
        self._driver.switch_to.window(new)
        self.drain()
        self.look(width, dark)
        self._driver.get(address)

    def look(self, width: int, dark: bool) -> None:
        """Set the width of the page in pixels, and the colours that the system asks for."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.cdp("Emulation.setDeviceMetricsOverride", **size)
        self.cdp("Emulation.setEmulatedMedia", features=[scheme, still])

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self._driver.execute_cdp_cmd(command, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns, or what the promise it returns is kept with."""
        return self._driver.execute_script(script, *arguments)

    def reload(self) -> None:
        self._driver.refresh()

    @property
    def url(self) -> str:
        return str(self._driver.current_url)

    @property
    def title(self) -> str:
        return str(self._driver.title)

    def wait(self, selector: str, text: str = "") -> WebElement:
        """The first visible element of a CSS selector that holds `text`, once there is one."""
        found = self.until(lambda: self.find(selector, text), f"no {selector} with {text!r}")
        assert found is not None
        return found

    def wait_gone(self, selector: str) -> None:
        self.until(lambda: not self.find(selector), f"{selector} stayed")

    def until(self, condition: Callable[[], T], otherwise: str) -> T:
        """What `condition` gives once it is true; an error that says `otherwise` if it never is."""
        waiting = WebDriverWait(self._driver, WAIT_S, POLL_S)
        return waiting.until(lambda _: condition(), otherwise)

    def find(self, selector: str, text: str = "") -> WebElement | None:
        """The first visible element of a CSS selector that holds `text`, if there is one now."""
        found = self.run(_FIND, selector, text)
        assert found is None or isinstance(found, WebElement)
        return found

    def all(self, selector: str) -> list[WebElement]:
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def settled(self) -> None:
        """Wait until what the view asked for has come."""
        self.wait("#main [aria-busy=false]")
        self.wait_gone("#main [aria-busy=true]")

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        self._driver.switch_to.active_element.send_keys(*keys)

    def tab_to(self, selector: str) -> None:
        """Press Tab until an element of the selector has the focus."""
        for _ in range(80):
            if self.run("return document.activeElement.matches(arguments[0])", selector):
                return
            self.press(Keys.TAB)
        raise AssertionError(f"Tab never came to {selector}")

    def fill(self, selector: str, text: str) -> None:
        """Replace what stands in a field, also where its view is just drawn anew."""
        self.until(lambda: self._filled(selector, text), f"no {selector} that stays")

    def _filled(self, selector: str, text: str) -> bool:
        try:
            element = self.wait(selector)
            element.clear()
            element.send_keys(text)
        except StaleElementReferenceException:
            return False
        return True

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a select by its value, whatever is in it."""
        assert self.run(_CHOOSE, self.wait(selector), value), f"{selector} has no {value!r}"

    def shoot(self, name: str) -> None:
        """Keep a picture of the whole page, or of the open dialog over it."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        whole = not self.all("dialog[open]")
        taken = self.cdp("Page.captureScreenshot", captureBeyondViewport=whole)
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))

    def drain(self) -> tuple[list[str], list[dict[str, Any]]]:
        """What was complained about in the console, and the requests sent, since the last time."""
        console = [entry["message"] for entry in self._driver.get_log("browser")]
        events = [json.loads(entry["message"]) for entry in self._driver.get_log("performance")]
        sent = [event["message"]["params"] for event in events if _is_request(event)]
        return console, [one["request"] for one in sent]


_FIND = """
return [...document.querySelectorAll(arguments[0])].find(
  (one) => one.checkVisibility() && one.textContent.includes(arguments[1])) ?? null"""


_CHOOSE = """const [select, value] = arguments;
const there = [...select.options].some((option) => option.value === value);
select.value = value;
select.dispatchEvent(new Event("change", { bubbles: true }));
return there"""


def _is_request(event: dict[str, Any]) -> bool:
    return bool(event["message"]["method"] == "Network.requestWillBeSent")
