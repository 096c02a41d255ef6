"""A phone, the dark, and people whom movement disturbs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import Person
from tests.e2e.browser.served import Served, serving
from tests.e2e.browser.views import addresses, staged

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
_WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with something in every view."""
    with serving(tmp_path_factory.mktemp("staged")) as one:
        staged(one)
        yield one


def _as(visitor: Visitor, served: Served, **options: Any) -> tuple[Person, Page]:
    person = visitor(served, **options)
    person.enter()
    return person, person.context.new_page()


def test_no_view_of_a_phone_scrolls_sideways(served: Served, visitor: Visitor) -> None:
    person, page = _as(visitor, served, **PHONE)
    wider = {}
    for name, path in addresses(served).items():
        person.open(path, page)
        person.watch.check()
        if page.evaluate(_WIDER) > 0:
            wider[name] = page.evaluate(_WIDER)
    assert wider == {}


def test_a_phone_opens_on_the_inbox_and_approves_with_a_finger(served: Served, visitor: Visitor) -> None:
    task = scenes.gate(served, "Approve with a finger")
    person, page = _as(visitor, served, **PHONE)
    person.open("/", page)
    expect(page.locator("#view")).to_have_attribute("data-view", "needs")
    item = page.locator(f"[data-item][data-task={task}]").first
    first = page.locator("[data-item]").first.bounding_box()
    assert first is not None
    assert first["y"] < 844, "the first item is not on the first screen"
    item.locator("[data-action=approve]").tap()
    expect(item).to_have_count(0)
    assert scenes.status(served, task) == "done"


def test_a_phone_moves_a_task_without_dragging(served: Served, visitor: Visitor) -> None:
    task = scenes.blocked(served, "Move with a finger", tags=["finger"])
    person, page = _as(visitor, served, **PHONE)
    person.open("/tasks?tag=finger", page)
    page.locator(f"#card-{task} .move").tap()
    page.locator("#dialog .menu a", has_text="ready").tap()
    page.locator("#dialog button[type=submit]").tap()
    expect(page.locator(f"ol[data-column=ready] #card-{task}")).to_be_visible()


def test_a_phone_shows_one_column_at_a_time_and_folds_the_filters(served: Served, visitor: Visitor) -> None:
    person, page = _as(visitor, served, **PHONE)
    person.open("/tasks", page)
    expect(page.locator(".column:visible")).to_have_id("column-in-progress")
    tab = page.get_by_role("navigation", name="Columns").get_by_role("link", name="done")
    expect(tab).to_have_text(re.compile(r"done \d+"))
    tab.tap()
    expect(page.locator(".column:visible")).to_have_id("column-done")
    expect(page.locator(".card:visible").first).to_be_visible()
    expect(page).to_have_url(re.compile("column=done"))
    expect(page.locator("#filters")).to_be_hidden()
    page.get_by_role("button", name="Filter").tap()
    page.get_by_label("Priority").select_option("high")
    expect(page).to_have_url(re.compile("priority=high"))
    expect(page.get_by_role("button", name="Filter (1)")).to_be_visible()
    expect(page.locator("#filters")).to_be_visible()


@pytest.mark.parametrize("view", ["/activity", "/graph", "/insights"])
def test_a_phone_folds_the_filters_of_every_view(served: Served, visitor: Visitor, view: str) -> None:
    person, page = _as(visitor, served, **PHONE)
    person.open(view, page)
    expect(page.locator("#filters")).to_be_hidden()
    page.get_by_role("button", name="Filter").tap()
    page.get_by_label("Agent", exact=True).fill("ada")
    expect(page).to_have_url(re.compile("agent=ada"))
    expect(page.get_by_role("button", name="Filter (1)")).to_be_visible()


def test_what_is_touched_on_a_phone_is_large_enough(served: Served, visitor: Visitor) -> None:
    person, page = _as(visitor, served, **PHONE)
    person.open("/", page)
    small = page.locator("#view .actions a, #view .actions button, #view .actions summary").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).filter(box => box.width < 24 || box.height < 24).length"
    )
    assert small == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_can_be_read_in_the_light_and_in_the_dark(visitor: Visitor, served: Served, scheme: str) -> None:
    person, page = _as(visitor, served, color_scheme=scheme)
    colours = set()
    for path in addresses(served).values():
        person.open(path, page)
        person.watch.check()
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    (colour,) = colours
    shade = sum(int(part) for part in colour.strip("rgba()").split(",")[:3]) / 3
    assert (shade < 80) == (scheme == "dark"), colour


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cards_are_lighter_than_the_column_that_they_lie_on(visitor: Visitor, served: Served, scheme: str) -> None:
    person, page = _as(visitor, served, color_scheme=scheme)
    person.open("/tasks", page)
    light = """(one) => getComputedStyle(one).backgroundColor.match(/\\d+/g)
      .slice(0, 3).reduce((sum, part) => sum + Number(part), 0)"""
    assert page.locator(".card").first.evaluate(light) >= page.locator(".column").first.evaluate(light) + 15


def test_a_phone_shows_no_keys_and_centres_the_names_of_columns(visitor: Visitor, served: Served) -> None:
    person, page = _as(visitor, served, **PHONE)
    person.open("/tasks", page)
    expect(page.get_by_text("Sign out")).to_be_visible()
    expect(page.locator("[data-help]")).to_be_hidden()
    off = """(tab) => {
      const words = document.createRange(), box = tab.getBoundingClientRect();
      words.selectNodeContents(tab);
      const text = words.getBoundingClientRect();
      return Math.abs(text.top + text.bottom - box.top - box.bottom) / 2;
    }"""
    assert page.locator(".tabs a").first.evaluate(off) <= 1


def test_the_theme_can_be_chosen_and_is_remembered(served: Served, visitor: Visitor) -> None:
    person, page = _as(visitor, served, color_scheme="light")
    person.open("/", page)
    switch = page.locator("[data-theme-switch]")
    while page.locator("html").get_attribute("data-theme") != "dark":
        switch.click()
    person.open("/tasks", page)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_nothing_moves_for_those_who_asked_for_less_motion(served: Served, visitor: Visitor) -> None:
    person, page = _as(visitor, served, reduced_motion="reduce")
    moving = """() => [...document.querySelectorAll("*")].filter((one) => {
      const style = getComputedStyle(one);
      const longest = (text) => Math.max(...text.split(",").map(parseFloat));
      return longest(style.transitionDuration) > 0.01
        || (style.animationName !== "none" && longest(style.animationDuration) > 0.01);
    }).map((one) => one.outerHTML.slice(0, 120))"""
    for path in addresses(served).values():
        person.open(path, page)
        assert page.evaluate(moving) == []
