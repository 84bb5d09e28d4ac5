"""Pages of a real browser that are watched, and used by one test after another: a new one costs a process each."""

import json
from collections import defaultdict

from playwright.sync_api import Browser, Page

EMPTY = "about:blank"
WIDE_ENOUGH = {"width": 1280, "height": 720}


class Watched:
    """A page and everything that must not happen on it."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("dialog", lambda dialog: self._note("error", f"dialog {dialog.message}"))

    def open(self, path: str) -> Page:
        answer = self.page.goto(f"{self.origin}{path}")
        assert answer is not None
        assert answer.ok, answer.status
        return self.page

    @property
    def left_the_origin(self) -> list[str]:
        return [url for url in self.requests if not url.startswith(f"{self.origin}/") and url != EMPTY]

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)


class Tabs:
    """Watched pages by their settings, each for one test at a time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._idle: dict[str, list[Watched]] = defaultdict(list)
        self._used: list[tuple[str, Watched]] = []

    def take(self, origin: str, *, is_new: bool = False, **settings) -> Watched:
        """One that knows nothing of the tests before; `is_new` where the test leaves in it what cannot be undone."""
        settings = {"viewport": WIDE_ENOUGH, "color_scheme": "light", **settings}
        key = json.dumps([origin, settings], sort_keys=True)
        if self._idle[key] and not is_new:
            watched = self._idle[key].pop()
            watched.page.set_viewport_size(settings["viewport"])
            watched.page.emulate_media(media="null", color_scheme=settings["color_scheme"])
            watched.requests.clear()
            watched.problems.clear()
        else:
            watched = Watched(self._browser.new_context(**settings).new_page(), origin)
        self._used.append(("" if is_new else key, watched))
        return watched

    def give_back(self) -> None:
        """Those taken since, none of which may have complained or asked another host for anything."""
        used, self._used = self._used, []
        for key, watched in used:
            problems, elsewhere = watched.problems.copy(), watched.left_the_origin
            if self._is_clean(key, watched):
                self._idle[key].append(watched)
            else:
                watched.page.context.close()
            assert problems == []
            assert elsewhere == []

    def _is_clean(self, key: str, watched: Watched) -> bool:
        """Whether it could be made as new."""
        page = watched.page
        if not key or page.is_closed() or len(page.context.pages) > 1 or not page.url.startswith(watched.origin):
            return False
        page.unroute_all()
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        page.context.clear_cookies()
        page.goto(EMPTY)
        return True
