"""What needs a person, the board, one task, agents, activity; and what holds for every view."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from aof.adapters.http.board.views.catalogue import VIEWS
from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import Person, card
from tests.e2e.browser.served import Served, serving
from tests.e2e.browser.views import addresses, staged


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with something in every view."""
    with serving(tmp_path_factory.mktemp("staged")) as one:
        staged(one)
        yield one


def _task(served: Served, title: str) -> str:
    with served.fabric() as fabric:
        return next(task.id for task in fabric.tasks() if task.title == title)


def test_every_view_opens_with_a_heading_and_a_title(person: Person, page: Page, served: Served) -> None:
    for name, path in addresses(served).items():
        person.open(path, page)
        expect(page.locator("#view")).to_have_attribute("data-view", name)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        expect(page).to_have_title(re.compile("· Lighthouse$"))
        expect(page.locator("#verified")).to_contain_text("event")


def test_every_view_says_so_where_there_is_nothing_yet(visitor: Visitor, alone: Served) -> None:
    person = visitor(alone)
    person.enter()
    page = person.context.new_page()
    filtered = {"agents": "?q=nobody", "activity": "?type=no.such.event"}
    for view in VIEWS:
        if view.key and view.name != "board":
            person.open(view.path + filtered.get(view.name, ""), page)
            expect(page.locator("#view .empty")).to_be_visible()
    person.open("/tasks", page)
    expect(page.locator(".cards")).to_have_count(5)
    expect(page.locator(".card")).to_have_count(0)


def test_needs_you_lists_gates_questions_dead_letters_and_overdue_tasks_oldest_first(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/", page)
    kinds = page.locator("[data-item]").evaluate_all("all => all.map(one => one.dataset.kind)")
    assert {"gate", "question", "deadletter", "overdue", "blocked"} <= set(kinds)
    times = page.locator("[data-item] time").evaluate_all("all => all.map(one => one.dateTime)")
    assert times == sorted(times)
    gate = page.locator("[data-kind=gate]", has_text="Repair the lamp")
    expect(gate.locator("[data-action=approve]")).to_be_visible()
    asked = page.locator("[data-kind=question]", has_text="Which flags do we hoist?")
    expect(asked.locator("[data-action=answer]")).to_be_visible()


def test_needs_you_is_narrowed_by_its_address(person: Person, page: Page, served: Served) -> None:
    person.open("/?kind=deadletter", page)
    expect(page.locator("[data-item]")).to_have_count(1)
    page.reload()
    expect(page.locator("[data-item]", has_text="Reach the reef")).to_be_visible()


def test_the_board_has_a_column_for_each_status_and_what_is_done_is_collapsed(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/tasks", page)
    columns = page.locator(".column").evaluate_all("all => all.map(one => one.id)")
    assert columns[:5] == [f"column-{name}" for name in ("backlog", "ready", "in-progress", "review", "blocked")]
    done = _task(served, "Clean the lens")
    expect(card(page, done)).to_have_count(0)
    page.locator("#column-done").get_by_role("link", name="show").click()
    expect(card(page, done)).to_be_visible()
    assert "open=done" in page.url


def test_filters_are_in_the_address_and_survive_a_reload(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, "Seven filters hold", tags=["seven"], priority="high", owner="pm", due="2026-01-02")
    asked = "q=filters&agent=ada&tag=seven&priority=high&overdue=1&open=done,cancelled&n-ready=60"
    person.open(f"/tasks?{asked}", page)
    expect(page.locator(".card")).to_have_count(1)
    page.reload()
    expect(page.locator(".card")).to_have_count(1)
    expect(card(page, task)).to_be_visible()
    form = page.locator("#filters")
    expect(form.locator("[name=q]")).to_have_value("filters")
    expect(form.locator("[name=agent]")).to_have_value("ada")
    expect(form.locator("[name=tag]")).to_have_value("seven")
    expect(form.locator("[name=priority]")).to_have_value("high")
    expect(form.locator("[name=overdue]")).to_be_checked()
    form.locator("[name=q]").fill("nothing like it")
    expect(page).to_have_url(re.compile("q=nothing.*tag=seven"))
    expect(page.locator(".card")).to_have_count(0)


def test_a_task_shows_its_brief_runs_relations_and_history(person: Person, page: Page, served: Served) -> None:
    person.open(f"/tasks/{_task(served, 'Repair the lamp')}", page)
    expect(page.locator(".prose em").first).to_have_text("wick")
    expect(page.get_by_role("region", name="Runs")).to_contain_text("ada")
    expect(page.locator(".relations")).to_contain_text("Paint the tower")
    expect(page.locator(".history")).to_contain_text("task.created")


def test_the_slider_shows_the_task_as_it_was_and_what_changed(person: Person, page: Page, served: Served) -> None:
    person.open(f"/tasks/{_task(served, 'Repair the lamp')}", page)
    slider = page.locator("#history-at")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#history-past")).to_contain_text("at event 1")
    expect(page.locator("#history-past")).to_contain_text("Replace the *wick*")
    page.keyboard.press("End")
    expect(page.locator("#history-past")).to_contain_text("review")


def test_agents_show_what_they_hold_against_what_they_can(person: Person, page: Page, served: Served) -> None:
    person.open("/agents", page)
    ada = page.locator("#agent-ada")
    expect(ada).to_contain_text("Measure the tide")
    expect(ada).to_contain_text("of 20")
    expect(ada.locator("time").first).to_be_visible()


def test_the_activity_shows_the_latest_events_and_grows_by_itself(person: Person, page: Page, served: Served) -> None:
    person.open("/activity?type=task.created", page)
    scenes.waiting(served, "The very latest")
    expect(page.locator("#events tr").first).to_contain_text("The very latest")
