"""Cards that are dragged: where the server allows it they go, elsewhere they come back, and nothing is approved."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import Person, card, column_of, shows
from tests.e2e.browser.served import Served


@pytest.fixture
def person(served: Served, visitor: Visitor) -> Person:
    """Somebody whose screen has room for every column."""
    one = visitor(served, viewport={"width": 2400, "height": 900})
    one.enter()
    return one


def _drag(page: Page, task_id: str, to: str) -> None:
    """Pick a card up and let it go over another column, with the steps that a hand makes."""
    box = card(page, task_id).bounding_box()
    target = page.locator(f"ol[data-column='{to}']").bounding_box()
    assert box is not None
    assert target is not None
    with page.expect_response(re.compile(rf"{task_id}/moves$")):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 6)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 12, box["y"] + box["height"], steps=4)
    expect(page.locator("body")).to_have_class(re.compile("dragging"))
    expect(page.locator("ol.may").first).to_be_attached()
    page.mouse.move(target["x"] + target["width"] / 2, target["y"] + 20, steps=12)
    page.mouse.move(target["x"] + target["width"] / 2 + 3, target["y"] + 24, steps=3)
    page.mouse.up()


def test_a_drag_to_where_the_server_allows_it_moves_the_task(person: Person, page: Page, served: Served) -> None:
    task = scenes.blocked(served, "Drag me", tags=["drag-one"])
    person.open("/tasks?tag=drag-one", page)
    _drag(page, task, "ready")
    shows(page, task, "ready")
    expect(column_of(page, task, "ready")).not_to_have_class(re.compile("pending"))
    assert scenes.status(served, task) == "ready"


def test_a_drag_shows_at_once_and_is_marked_until_the_server_agrees(person: Person, page: Page, served: Served) -> None:
    task = scenes.blocked(served, "Drag me slowly", tags=["drag-two"])
    person.open("/tasks?tag=drag-two", page)
    held: list[Route] = []
    page.route("**/do/unblock", lambda route: held.append(route))  # noqa: PLW0108 - it looks inside of functions
    _drag(page, task, "ready")
    expect(column_of(page, task, "ready")).to_have_class(re.compile("pending"))
    assert scenes.status(served, task) == "blocked"
    held[0].continue_()
    expect(column_of(page, task, "ready")).not_to_have_class(re.compile("pending"))
    assert scenes.status(served, task) == "ready"


def test_a_drag_that_the_server_refuses_goes_back_and_says_why(person: Person, page: Page, served: Served) -> None:
    person.watch.forgive("status of 4")
    task = scenes.blocked(served, "Too late", tags=["drag-three"])
    person.open("/tasks?tag=drag-three", page)

    def overtake(route: Route) -> None:
        with served.fabric() as fabric:
            fabric.edit(task, priority="high")
        route.continue_()

    page.route("**/do/unblock", overtake)
    _drag(page, task, "ready")
    expect(page.locator("#toasts")).to_contain_text("Not moved")
    shows(page, task, "blocked")
    assert scenes.status(served, task) == "blocked"


def test_a_drag_never_approves(person: Person, page: Page, served: Served) -> None:
    task = scenes.gate(served, "No approval by hand", tags=["drag-four"])
    person.open("/tasks?tag=drag-four&open=done", page)
    _drag(page, task, "done")
    expect(page.locator("body")).not_to_have_class(re.compile("dragging"))
    shows(page, task, "review")
    assert scenes.status(served, task) == "review"


def test_a_drag_that_cannot_be_undone_asks_first_and_goes_back_when_thought_better_of(
    person: Person, page: Page, served: Served
) -> None:
    task = scenes.waiting(served, "Cancel by hand", tags=["drag-five"])
    person.open("/tasks?tag=drag-five&open=cancelled", page)
    _drag(page, task, "cancelled")
    expect(page.locator("#dialog form")).to_be_visible()
    page.locator("#dialog [data-close]").click()
    shows(page, task, "ready")
    assert scenes.status(served, task) == "ready"


def test_a_drag_while_the_server_is_away_goes_back(person: Person, page: Page, served: Served) -> None:
    person.watch.forgive("ERR_FAILED")
    task = scenes.blocked(served, "Nobody home", tags=["drag-six"])
    person.open("/tasks?tag=drag-six", page)
    page.route("**/do/unblock", lambda route: route.abort())
    _drag(page, task, "ready")
    expect(page.locator("#toasts")).to_contain_text("Not moved")
    shows(page, task, "blocked")
