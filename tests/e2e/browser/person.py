"""A person in front of the page: a browser context that signed in by a link, and what people do with it."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.browser.chromium import Outside
from tests.e2e.browser.served import Served
from tests.e2e.browser.watch import Watch

PATIENCE = 20_000  # milliseconds that only a failure takes
LIVE = "#connection[data-state=live]"
WIDE = {"width": 1360, "height": 900}


class Person:
    """One browser profile. Its pages are watched until it leaves."""

    def __init__(self, browser: Browser, served: Served, **options: Any) -> None:
        self.served = served
        self._outside = Outside()
        self.context = browser.new_context(
            **({"viewport": WIDE, "locale": "en-GB", "timezone_id": "UTC"} | options),
            proxy={"server": self._outside.address, "bypass": "127.0.0.1"},
        )
        self.context.set_default_timeout(PATIENCE)
        self.watch = Watch(self.context, served.origin, self._outside)

    def enter(self) -> None:
        """Be in, by the session that a link has begun for all who come to this service."""
        if self.served.session is None:
            page = self.sign_in()
            self.served.session = self.context.cookies(), page.evaluate("({...localStorage})")
            page.close()
        else:
            cookies, kept = self.served.session
            self.context.add_cookies(cookies)
            self.context.add_init_script(f"""
                if (location.origin === {json.dumps(self.served.origin)})
                  for (const one of {json.dumps([*kept.items()])}) localStorage.setItem(...one);""")

    def sign_in(self, **given: Any) -> Page:
        """Follow a fresh link."""
        page = self.context.new_page()
        page.goto(self.served.link(**given))
        page.wait_for_url(f"{self.served.origin}/board/")
        page.wait_for_selector(LIVE)
        return page

    def open(self, path: str = "/", page: Page | None = None) -> Page:
        """A view, in a new tab or in one that there is, connected."""
        shown = page or self.context.new_page()
        shown.goto(f"{self.served.origin}/board{path}")
        shown.wait_for_selector(LIVE)
        return shown

    def leave(self, *, check: bool = True) -> None:
        """The checks that hold for every page, then the end."""
        try:
            if check:
                self.watch.check()
            else:
                self.watch.report()
        finally:
            self.context.close()
            self._outside.close()


def card(page: Page, task_id: str) -> Locator:
    """A task on the board."""
    return page.locator(f"#card-{task_id}")


def column_of(page: Page, task_id: str, status: str) -> Locator:
    """A task in a column."""
    return page.locator(f"ol[data-column='{status}'] #card-{task_id}")


def shows(page: Page, task_id: str, status: str) -> None:
    """Wait until the board has a task in this column, settled."""
    expect(column_of(page, task_id, status)).to_be_visible(timeout=PATIENCE)
    expect(card(page, task_id)).not_to_have_class("pending", timeout=PATIENCE)
