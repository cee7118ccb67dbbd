"""A real browser for pages on disk, and what must hold of every page of a report.

A file of tests that wants the browser says `browser = tests.browser.browser`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
CAMERA = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")  # a moving picture, nobody is asked
PHONE, DESK = 360, 1400
LATER = 10**6  # seconds on the page's clock: no page takes as long to open
CHECKS = (Path(__file__).parent / "page_checks.js").read_text().strip()
READABLE = 4.5  # contrast of text against what is behind it, WCAG AA


def found_browser() -> str | None:
    """Where the system's Chromium is: CASCADED_BROWSER if it is set, and only that; otherwise one on the PATH."""
    chosen = os.environ.get("CASCADED_BROWSER")
    return next(filter(None, map(shutil.which, [chosen] if chosen else NAMES)), None)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    """The system's Chromium, one for a file of tests: longer, its event loop would stand in the way of others."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    path = found_browser()
    if path is None:
        pytest.skip(f"none of {', '.join(NAMES)} is on the path: install one, or say where with CASCADED_BROWSER")
    with api.sync_playwright() as driver:
        own = {name: str(tmp_path_factory.mktemp("browser")) for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
        opened = driver.chromium.launch(executable_path=path, args=[*QUIET, *CAMERA], env={**os.environ, **own})
        yield opened
        opened.close()


@dataclass
class Visit:
    """A page that is open, and what happened there that should not have."""

    page: Any
    trouble: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def steps(self) -> tuple[int, int]:
        """The explorer's step, and how many there are."""
        _, step, _, steps = self.page.inner_text("#explorer-step").split()
        return int(step), int(steps)


@contextmanager
def visited(browser: Any, file: Path | str, width: int = DESK, **options: Any) -> Iterator[Visit]:
    """Open a page from disk or a URL. Its time stands still unless a test lets it run: `page.clock.run_for(1000)`."""
    size = {"width": width, "height": 800}
    context = browser.new_context(viewport=size, reduced_motion="reduce", **options)
    page = context.new_page()
    visit = Visit(page)
    page.on("console", lambda message: visit.trouble.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: visit.trouble.append(f"error: {error}"))
    page.on("request", lambda request: visit.requests.append(request.url))
    page.on("dialog", lambda dialog: (visit.trouble.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.clock.install(time=0)
    page.goto(file if isinstance(file, str) else file.resolve().as_uri())
    if options.get("java_script_enabled", True):
        if page.locator("#explorer-box").count():
            page.wait_for_function("() => document.getElementById('explorer-step').textContent !== ''")
        page.clock.pause_at(LATER)
    yield visit
    context.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL of a folder on a local server."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def check_page(browser: Any, file: Path) -> None:
    """All that must hold of any page of a report, with or without an explorer."""
    for width, scheme in ((PHONE, "dark"), (DESK, "light")):
        with visited(browser, file, width, color_scheme=scheme) as visit:
            explorer = visit.page.locator("#explorer-box").count()
            check_fits(visit)
            visit.page.evaluate("document.querySelectorAll('details').forEach(each => (each.open = true))")
            check_fits(visit)
            check_contrast(visit)
            if explorer:
                check_plays(visit)
            if explorer and width == DESK:
                check_keys(visit)
            check_tab(visit)
            check_prints(visit)
            check_quiet(visit, file)


def check_quiet(visit: Visit, file: Path) -> None:
    """No errors, and nothing was loaded but the page itself."""
    loaded = [url for url in visit.requests if not url.startswith("data:")]
    assert visit.trouble == [], visit.trouble
    assert loaded == [file.resolve().as_uri()], loaded


def check_fits(visit: Visit) -> None:
    """Nothing stands out to the side, and no text is cut, except in what scrolls by itself."""
    out = visit.page.evaluate(f"{CHECKS}.out()")
    assert out == [], out


def check_contrast(visit: Visit) -> None:
    """All text can be read on what is behind it."""
    faint = visit.page.evaluate(f"{CHECKS}.faint({READABLE})")
    assert faint == [], faint


def check_plays(visit: Visit) -> None:
    """Play advances the step and the bars; pause stops both."""
    page = visit.page
    bars = "[...document.querySelectorAll('.bars .fill')].map(each => each.style.width)"
    page.focus("#explorer-box")
    page.keyboard.press("Home")
    before = page.evaluate(bars)
    page.select_option("#explorer-speed", "1")
    page.click("#explorer-play")
    page.clock.run_for(1001)
    assert visit.steps()[0] == 2
    assert page.evaluate(bars) != before
    page.click("#explorer-play")
    page.clock.run_for(5000)
    assert visit.steps()[0] == 2
    page.click("#explorer-play")
    page.clock.run_for(1000 * visit.steps()[1])
    assert visit.steps()[0] == visit.steps()[1]
    assert page.get_attribute("#explorer-play", "aria-label") == "Play"


def check_keys(visit: Visit) -> None:
    """Every key does what the hint says, once, wherever in the explorer one is."""
    page = visit.page
    last = visit.steps()[1]
    for place in ("#explorer-box", "#explorer-time", "#explorer-back", '.thumb[tabindex="0"]'):
        page.focus(place)
        for key, step in (("End", last), ("ArrowLeft", last - 1), ("Home", 1), ("ArrowRight", 2)):
            page.keyboard.press(key)
            assert visit.steps()[0] == step, (place, key)
    page.focus("#explorer-sort")
    page.keyboard.press("ArrowRight")
    assert visit.steps()[0] == 2
    page.select_option("#explorer-sort", "class")
    for place in ("#explorer-box", "#explorer-time", "#explorer-play", '.thumb[tabindex="0"]'):
        page.focus(place)
        page.keyboard.press("Space")
        assert page.get_attribute("#explorer-play", "aria-label") == "Pause", place
        page.keyboard.press("Space")
        assert page.get_attribute("#explorer-play", "aria-label") == "Play", place
    image = page.inner_text("#explorer-position")
    for key, back in (("ArrowDown", "ArrowUp"), ("]", "[")):
        page.keyboard.press(key)
        assert page.inner_text("#explorer-position") != image
        page.keyboard.press(back)
        assert page.inner_text("#explorer-position") == image


def check_tab(visit: Visit) -> None:
    """Tab comes to all that can be used, and where one is can be seen."""
    page = visit.page
    page.evaluate(f"{CHECKS}.watchFocus()")
    for stop in range(page.evaluate("toReach.size") + 60):  # what scrolls is come by as well
        if stop % 20 == 0 and not page.evaluate("toReach.size"):
            break
        page.keyboard.press("Tab")
    missed = page.evaluate("[...toReach].map(each => each.outerHTML.slice(0, 120))")
    unseen = page.evaluate("unseen")
    assert missed == [], missed
    assert unseen == [], unseen


def check_prints(visit: Visit) -> None:
    """On paper there is nothing to press, all is dark on white, and every section is there."""
    page = visit.page
    page.emulate_media(media="print")
    shown = "(kind) => [...document.querySelectorAll(kind)].filter(each => each.checkVisibility()).length"
    assert page.evaluate(shown, "button, select, input, nav, .skip") == 0
    assert page.evaluate(shown, "main > section") == page.locator("main > section").count() > 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    check_contrast(visit)
    page.emulate_media(media="screen")


if __name__ == "__main__":  # `make browser` asks whether there is anything to install
    import sys

    sys.exit(found_browser() is None)
