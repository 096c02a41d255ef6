"""Each view shows what it is for, and keeps its filters in its address."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from aof.adapters.http.board.views.catalogue import VIEWS
from tests.e2e.browser import scenes
from tests.e2e.browser.person import Person, card
from tests.e2e.browser.served import Served, serving
from tests.e2e.browser.views import addresses, staged

EXPECTED = (
    "needs",
    "board",
    "task",
    "agents",
    "workflow",
    "timeline",
    "graph",
    "handoffs",
    "mailbox",
    "worklog",
    "flow",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with something in every view."""
    with serving(tmp_path_factory.mktemp("staged")) as one:
        staged(one)
        yield one


def _task(served: Served, title: str) -> str:
    with served.fabric() as fabric:
        return next(task.id for task in fabric.tasks() if task.title == title)


def test_every_view_that_people_need_is_there() -> None:
    assert set(EXPECTED) | {"activity"} <= {view.name for view in VIEWS}


@pytest.mark.parametrize("name", [view.name for view in VIEWS])
def test_each_view_opens_with_a_heading_and_a_title(person: Person, page: Page, served: Served, name: str) -> None:
    person.open(addresses(served)[name], page)
    expect(page.locator("#view")).to_have_attribute("data-view", name)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page).to_have_title(re.compile("· Lighthouse$"))
    expect(page.locator("#verified")).to_contain_text("event")


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


def test_a_workflow_is_drawn_with_its_hops_and_stands_below_as_a_table(
    person: Person, page: Page, served: Served
) -> None:
    person.open(addresses(served)["workflow"], page)
    drawing = page.locator("#drawing")
    expect(drawing.locator("[data-node]")).to_have_count(3)
    expect(drawing).to_contain_text("implement")
    page.locator("#as-table summary").click()
    expect(page.locator("#hop-implement")).to_contain_text("ada")
    expect(page.locator("#hop-ship")).to_contain_text("check")


def test_a_gate_in_a_workflow_has_its_buttons_where_it_is_drawn(person: Person, page: Page, served: Served) -> None:
    with served.fabric() as fabric:
        task = fabric.create("Bind the almanac", workflow="release", metadata={"reviewRequired": True}).task_id
    for hop, agent in (("implement", "ada"), ("check", "bob"), ("ship", "pm")):
        with served.fabric(agent) as fabric:
            run = fabric.claim(task, agent=agent, hop=hop).run_id
            fabric.complete(task, run=run, agent=agent, hop=hop, summary=f"{hop} is done")
            if fabric.get(task).status == "review":
                break
    person.open(f"/workflow?task={task}", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(3)
    if scenes.status(served, task) == "review":
        expect(page.locator("#gates [data-action=approve]")).to_be_visible()


def test_the_timeline_tells_waiting_from_working_also_as_a_table(person: Person, page: Page, served: Served) -> None:
    person.open("/timeline", page)
    expect(page.locator("#lanes svg rect.bar-waited").first).to_be_attached()
    asked = page.locator("#runs tr", has_text="Choose the flags")
    expect(asked.locator(".badge.warn")).to_be_visible()
    page.locator("[name=by]").select_option("agent")
    expect(page).to_have_url(re.compile("by=agent"))
    expect(page.locator(".lane-name", has_text="ada")).to_be_visible()


def test_the_graph_shows_the_neighbours_of_a_task_also_as_a_table(person: Person, page: Page, served: Served) -> None:
    first, second = _task(served, "Repair the lamp"), _task(served, "Paint the tower")
    person.open(f"/graph?task={first}", page)
    expect(page.locator(f"#drawing [data-node='{second}']")).to_be_attached()
    page.locator("#as-table summary").click()
    expect(page.locator(f"#node-{second}")).to_contain_text("Paint the tower")
    page.locator(f"#drawing [data-node='{second}']").click()
    page.wait_for_url(re.compile(second))


def test_the_graph_stops_at_two_hundred_tasks_and_says_so(person: Person, page: Page, served: Served) -> None:
    with served.fabric() as fabric:
        root = fabric.create("The hub", tags=["hub"]).task_id
        for number in range(210):
            fabric.create(f"Spoke {number}", depends_on=(root,), tags=["hub"])
    person.open(f"/graph?task={root}", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(200)
    expect(page.locator("#view")).to_contain_text("11 more tasks")


def test_the_flow_is_charted_and_stands_below_as_a_table(person: Person, page: Page, served: Served) -> None:
    person.open("/flow", page)
    expect(page.locator("#cumulative canvas")).to_be_visible()
    expect(page.locator("#throughput canvas")).to_be_visible()
    page.locator("#as-table summary").click()
    expect(page.locator("#as-table tbody tr").first).to_be_visible()
    expect(page.locator("#times")).to_contain_text("since they were created")
    expect(page.locator("#by-agent")).to_contain_text("ada")


def test_handoffs_mail_and_worklog_are_shown(person: Person, page: Page, served: Served) -> None:
    person.open("/handoffs", page)
    expect(page.locator("#handoffs tr", has_text="two eyes more")).to_contain_text("bob")
    person.watch.check()
    person.open("/mailbox", page)
    page.locator("#messages summary", has_text="Oil").click()
    expect(page.locator("#messages em")).to_have_text("much")
    person.watch.check()
    person.open("/worklog", page)
    expect(page.locator("#view")).to_contain_text("We paint the tower red")
    expect(page.locator("#view")).to_contain_text("the lamp")


@pytest.mark.parametrize("path", ["/tasks", "/", "/agents", "/activity"])
def test_a_page_that_knows_no_more_says_so_and_not_nothing(
    person: Person, page: Page, served: Served, path: str
) -> None:
    person.open(f"{path}?q=no-such-thing&kind=mail&type=no.such.event", page)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
