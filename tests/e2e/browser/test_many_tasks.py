"""A directory of 10,000 tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from aof.bench.sizes import written
from tests.e2e.browser import scenes
from tests.e2e.browser.person import Person, shows
from tests.e2e.browser.served import Served, serving_on

_MOST = 50


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on all of them."""
    with serving_on(Path(written(tmp_path_factory.mktemp("many") / "room", 10_000))) as one:
        yield one


def test_the_board_shows_fifty_of_each_column_and_more_on_demand(person: Person, page: Page, served: Served) -> None:
    person.open("/tasks", page)
    ready = page.locator("#cards-ready .card")
    expect(ready).to_have_count(_MOST)
    total = int(page.locator("#head-ready .count").inner_text().replace(",", ""))
    assert total > 8_000
    page.locator("#more-ready").click()
    expect(ready).to_have_count(2 * _MOST)
    expect(page).to_have_url(re.compile("n-ready=100"))
    page.reload()
    expect(ready).to_have_count(2 * _MOST)


def test_a_change_among_ten_thousand_tasks_appears_by_itself(person: Person, page: Page, served: Served) -> None:
    person.open("/tasks", page)
    task = scenes.waiting(served, "The ten thousand and first", priority="critical")
    shows(page, task, "ready")


def test_a_search_finds_one_among_ten_thousand(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, "Quicksilver")
    person.open("/tasks?q=Quicksilver", page)
    shows(page, task, "ready")
    expect(page.locator(".card")).to_have_count(1)
