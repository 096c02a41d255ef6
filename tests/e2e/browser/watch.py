"""What holds for every page that a test opens: nothing on the console, nothing off the machine, usable by everybody."""

from __future__ import annotations

import json
import re

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError

from tests.e2e.browser.accessibility import violations
from tests.e2e.browser.chromium import Outside

_TELL_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.effectiveDirective} forbids ${event.blockedURI} ${event.sample}`));"""
_LOCAL = ("data:", "blob:", "about:")


class Watch:
    """Listens to all pages of one browser context. What a test provokes on purpose, it forgives by a pattern."""

    def __init__(self, context: BrowserContext, origin: str, outside: Outside) -> None:
        self.requests: list[str] = []
        self._context = context
        self._origin = origin
        self._outside = outside
        self._said: list[str] = []
        self._forgiven: list[re.Pattern[str]] = []
        context.add_init_script(_TELL_VIOLATIONS)
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)

    def forgive(self, *patterns: str) -> None:
        """The console may say this."""
        self._forgiven += [re.compile(pattern) for pattern in patterns]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            place = message.location
            self._said.append(f"{message.type}: {message.text} ({place.get('url')}:{place.get('lineNumber')})")

    def _error(self, error: WebError) -> None:
        self._said.append(f"uncaught: {error.error}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)

    def foreign(self) -> list[str]:
        """Requests that went elsewhere than to the service."""
        own = (f"{self._origin}/", *_LOCAL)
        return [url for url in self.requests if not url.startswith(own)] + self._outside.asked

    def said(self) -> list[str]:
        """What the console had to say that nobody forgave."""
        return [text for text in self._said if not any(one.search(text) for one in self._forgiven)]

    def check(self) -> None:
        """At the end: all of it, for every page that is still open."""
        barriers = {page.url: broken for page in self._context.pages if (broken := violations(page))}
        found = {"console": self.said(), "foreign requests": self.foreign(), "barriers": barriers}
        problems = {what: told for what, told in found.items() if told}
        assert not problems, json.dumps(problems, indent=1, ensure_ascii=False)

    def report(self) -> None:
        """After a failure: what may explain it."""
        for page in self._context.pages:
            print(page.url, page.locator("#view, #dialog[open], #toasts, .problem").all_inner_texts())  # noqa: T201
        print(*self.said(), *self.foreign(), sep="\n")  # noqa: T201 - pytest shows it with the failure
