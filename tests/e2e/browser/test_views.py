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
    filtered = {"agents": "?q=nobody", "activity": "?agent=nobody"}
    for view in VIEWS:
        if view.key and view.name != "board":
            person.open(view.path + filtered.get(view.name, ""), page)
            expect(page.locator("#view .empty").first).to_be_visible()
    person.open("/tasks", page)
    expect(page.locator(".cards")).to_have_count(5)
    expect(page.locator(".card")).to_have_count(0)


def test_needs_you_begins_with_questions_then_reviews_then_what_is_overdue(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/", page)
    kinds = page.locator("[data-item]").evaluate_all("all => all.map(one => one.dataset.kind)")
    assert list(dict.fromkeys(kinds))[:3] == ["question", "gate", "overdue"]
    assert {"deadletter", "blocked"} <= set(kinds)
    gate = page.locator("[data-kind=gate]", has_text="Repair the lamp")
    expect(gate.locator(".reported")).to_contain_text("The lamp burns again.")
    expect(gate.locator("[data-action=approve]")).to_be_visible()
    asked = page.locator("[data-kind=question]", has_text="Which flags do we hoist?")
    expect(asked.locator("[data-action=answer]")).to_be_visible()


def test_a_question_is_answered_in_place_by_one_of_its_choices(person: Person, page: Page, served: Served) -> None:
    task = scenes.question(served, "Rope", "Which rope?")
    person.open("/", page)
    item = page.locator(f"[data-item][data-task={task}]")
    item.locator("[data-choice]", has_text="white").click()
    expect(item).to_have_count(0)
    expect(page.locator("#dialog")).to_be_hidden()
    assert _answer(served, task) == "white"


def test_a_question_is_answered_in_place_in_ones_own_words(person: Person, page: Page, served: Served) -> None:
    task = scenes.question(served, "Knots", "Which knot?")
    person.open("/", page)
    item = page.locator(f"[data-item][data-task={task}]")
    item.locator("textarea").fill("a bowline")
    scenes.waiting(served, "Noise while somebody types")
    item.locator("[data-action=answer]").click()
    expect(item).to_have_count(0)
    assert _answer(served, task) == "a bowline"


def _answer(served: Served, task: str) -> str | None:
    with served.fabric() as fabric:
        (question,) = fabric.get(task).questions
        return question.answer.text if question.answer else None


def test_work_is_approved_with_one_click_under_its_report(person: Person, page: Page, served: Served) -> None:
    task = scenes.gate(served, "Approved in place")
    person.open("/", page)
    item = page.locator(f"[data-item][data-task={task}]")
    item.locator("[data-action=approve]").click()
    expect(item).to_have_count(0)
    assert scenes.status(served, task) == "done"


def test_changes_are_requested_in_place_with_the_reason(person: Person, page: Page, served: Served) -> None:
    task = scenes.gate(served, "Sent back in place")
    person.open("/", page)
    item = page.locator(f"[data-item][data-task={task}]")
    item.locator("[data-action=reject]").click()
    item.locator("textarea").fill("no docs\nno tests")
    item.get_by_role("button", name="Send back").click()
    expect(item).to_have_count(0)
    with served.fabric() as fabric:
        found = fabric.get(task)
        assert found.status == "ready"
        assert "no docs; no tests" in found.body


def test_work_that_changed_since_it_was_shown_is_not_judged_in_place_unseen(
    person: Person, page: Page, served: Served
) -> None:
    person.watch.forgive("status of 409")
    task = scenes.gate(served, "Changed in place")
    person.open("/", page)
    item = page.locator(f"[data-item][data-task={task}]")
    item.locator("[data-action=reject]").click()
    item.locator("textarea").fill("typed before")
    with served.fabric() as fabric:
        fabric.edit(task, priority="low")
    item.get_by_role("button", name="Send back").click()
    expect(item.locator(".problem")).to_be_visible()
    expect(item.locator("textarea")).to_have_value("typed before")
    assert scenes.status(served, task) == "review"
    item.get_by_role("button", name="Send back").click()
    expect(item).to_have_count(0)
    assert scenes.status(served, task) == "ready"


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


def test_the_activity_tells_in_words_what_happened_and_grows_by_itself(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/activity", page)
    expect(page.get_by_role("heading", name="Today")).to_be_visible()
    expect(page.locator(".stories")).to_contain_text("ada finished Repair the lamp")
    expect(page.locator("#view")).not_to_contain_text("task.created")
    task = scenes.waiting(served, "The very latest")
    line = page.locator(".stories li").first
    expect(line).to_contain_text("pm created The very latest")
    line.locator(".at").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(task)


def test_the_activity_is_narrowed_to_an_agent_a_kind_and_a_task(person: Person, page: Page, served: Served) -> None:
    person.open("/activity", page)
    page.get_by_label("Agent").fill("ada")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("agent=ada"))
    expect(page.locator(".stories")).not_to_contain_text("pm created")
    person.open("/activity?kind=task", page)
    expect(page.locator(".stories")).not_to_contain_text("wrote to")
    person.open(f"/activity?task={_task(served, 'Clean the lens')}", page)
    expect(page.locator(".stories li")).to_have_text(
        [re.compile("approved"), re.compile("finished"), re.compile("claimed"), re.compile("created")]
    )


def test_the_activity_goes_back_page_by_page_without_gap_or_repetition(visitor: Visitor, alone: Served) -> None:
    with alone.fabric() as fabric:
        titles = [f"Number {number}" for number in range(130)]
        for title in titles:
            fabric.create(title)
    person = visitor(alone)
    person.enter()
    page = person.open("/activity")
    seen: list[str] = []
    while True:
        seen += page.locator(".stories .card-title").all_inner_texts()
        earlier = page.get_by_role("link", name="earlier")
        if earlier.count() == 0:
            break
        person.open(str(earlier.get_attribute("href")).removeprefix("/board"), page)
    assert seen == titles[::-1]


def test_old_addresses_lead_to_what_took_their_place(person: Person, page: Page, served: Served) -> None:
    moved = {
        "/worklog": "/activity?kind=worklog",
        "/mailbox?status=closed": "/activity?kind=mail&status=closed",
        "/handoffs?state=all": "/activity?kind=handoff&state=all",
        "/timeline?by=task": "/insights?by=task",
        "/flow?days=30": "/insights?days=30",
    }
    for old, new in moved.items():
        person.open(old, page)
        assert page.url == f"{served.origin}/board{new}"
        expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_the_navigation_names_workflows_only_where_there_are_some(
    person: Person, page: Page, visitor: Visitor, alone: Served
) -> None:
    person.open("/", page)
    views = page.get_by_role("navigation", name="Views")
    expect(views.get_by_role("link", name="Workflow")).to_be_visible()
    other = visitor(alone)
    other.enter()
    without = other.open("/").get_by_role("navigation", name="Views")
    expect(without.get_by_role("link")).to_have_text(["Needs you", "Board", "Agents", "Graph", "Activity", "Insights"])
