"""Workflow, graph, timeline, flow, handoffs, mailbox, worklog: drawn, as tables, filtered and live."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.person import Person
from tests.e2e.browser.served import Served, serving
from tests.e2e.browser.views import addresses, staged
from tests.support.service import workflow
from tests.support.workflows import hop, template


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with something in every view."""
    with serving(tmp_path_factory.mktemp("staged")) as one:
        staged(one)
        yield one


def _gated(served: Served, title: str = "Rewire the fog horn") -> str:
    """A task whose first hop waits for an approval."""
    first = hop("first", role="developer", autoAdvance=False)
    hops = (first, hop("second", "first", role="developer"), hop("third", "second", role="developer"))
    workflow(served.root, template(*hops, name="steps"))
    with served.fabric() as fabric:
        task = fabric.create(title, workflow="steps").task_id
        fabric.claim(task, agent="ada", hop="first")
        fabric.complete(task, agent="ada", outcome="complete", summary="wired")
    return task


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


def test_a_gate_is_approved_where_its_workflow_is_drawn(person: Person, page: Page, served: Served) -> None:
    task = _gated(served)
    person.open(f"/workflow/{task}", page)
    expect(page.locator("#drawing [data-node=first]")).to_have_class(re.compile("s-review"))
    page.locator("#gates [data-action=approve]").click()
    page.locator("#dialog button[type=submit]").click()
    expect(page.locator("#drawing [data-node=first]")).to_have_class(re.compile("s-done"))
    expect(page.locator("#drawing [data-node=second]")).to_have_class(re.compile("s-ready"))
    expect(page.locator("#gates")).to_have_count(0)
    with served.fabric() as fabric:
        assert fabric.get(task).workflow["hops"][0]["status"] == "done"


def test_a_hop_of_the_drawing_leads_by_keyboard_to_its_row(person: Person, page: Page, served: Served) -> None:
    person.open(f"/workflow/{_gated(served)}", page)
    page.locator("#drawing [data-node=third]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#hop-third")).to_be_visible()
    expect(page.locator("#hop-third")).to_contain_text("waiting")


def test_a_task_without_a_workflow_is_told_apart_and_leads_to_those_that_have_one(
    person: Person, page: Page, served: Served
) -> None:
    person.open(f"/workflow?task={scenes.waiting(served, 'Sweep the stairs')}", page)
    expect(page.locator("#view")).to_contain_text("Sweep the stairs")
    expect(page.locator("#view")).to_contain_text("is in no workflow")
    page.get_by_role("link", name="Release the almanac").click()
    expect(page.locator("#drawing [data-node]")).to_have_count(3)


def test_the_graph_shows_what_a_task_is_connected_with_and_grows_live(
    person: Person, page: Page, served: Served
) -> None:
    with served.fabric() as fabric:
        first = fabric.create("Order oil").task_id
        middle = fabric.create("Fill the tank", depends_on=[first]).task_id
    person.open(f"/graph?task={middle}", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(2)
    with served.fabric() as fabric:
        child = fabric.create("Read the gauge", parent_id=middle).task_id
    expect(page.locator("#drawing [data-node]")).to_have_count(3)
    page.get_by_text("As a table").click()
    expect(page.locator(f"#node-{child}")).to_contain_text("child")
    page.locator(f"#drawing [data-node='{child}']").press("Enter")
    expect(page).to_have_url(re.compile(f"/board/tasks/{child}"))


def test_the_graph_stops_at_two_hundred_tasks_and_says_so(person: Person, page: Page, served: Served) -> None:
    with served.fabric() as fabric:
        root = fabric.create("The hub").task_id
        for number in range(210):
            fabric.create(f"Spoke {number}", depends_on=(root,))
    person.open(f"/graph?task={root}&n=9999", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(200)
    expect(page.locator("#view")).to_contain_text("11 more tasks")


def test_the_timeline_tells_waiting_from_working_also_as_a_table(person: Person, page: Page, served: Served) -> None:
    task = scenes.question(served, "Choose the paint")
    person.open("/timeline?span=1h", page)
    row = page.locator("#runs tr", has_text="Choose the paint")
    expect(row).to_contain_text("running")
    expect(page.locator("#lanes svg rect.bar-waited").first).to_be_attached()
    with served.fabric() as fabric:
        fabric.answer(task, text="red")
        fabric.cancel(task)
    expect(row).to_contain_text("cancelled")
    page.get_by_label("By").select_option("agent")
    expect(page).to_have_url(re.compile("by=agent"))
    expect(page.locator(".lane-name", has_text="ada").first).to_be_visible()


def test_the_flow_is_charted_and_stands_below_as_a_table(person: Person, page: Page, served: Served) -> None:
    person.open("/flow?days=7", page)
    expect(page.locator("#cumulative canvas")).to_be_visible()
    expect(page.locator("#throughput canvas")).to_be_visible()
    expect(page.locator("#times")).to_contain_text("since they were created")
    expect(page.locator("#by-agent")).to_contain_text("ada")
    page.get_by_text("As a table").click()
    expect(page.locator("#as-table tbody tr")).to_have_count(7)
    page.get_by_label("The last").select_option("14")
    expect(page.locator("#as-table tbody tr")).to_have_count(14)
    expect(page.locator("#cumulative canvas")).to_be_visible()
    expect(page).to_have_url(re.compile("days=14"))


def test_handoffs_are_listed_and_filtered(person: Person, page: Page, served: Served) -> None:
    person.open("/handoffs", page)
    expect(page.locator("#handoffs tr", has_text="two eyes more")).to_contain_text("bob")
    page.get_by_label("State").select_option("completed")
    expect(page.locator("#handoffs")).not_to_contain_text("two eyes more")
    expect(page).to_have_url(re.compile("state=completed"))


def test_mail_is_listed_and_what_was_opened_stays_open_when_more_comes(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/mailbox", page)
    page.locator("#messages summary", has_text="Oil").click()
    expect(page.locator("#messages em")).to_have_text("much")
    with served.fabric() as fabric:
        fabric.mail_send("ada", "Which rope?", from_agent="bob")
    expect(page.locator("#messages")).to_contain_text("Which rope?")
    expect(page.locator("#messages em")).to_be_visible()


def test_the_worklog_shows_what_is_pinned_decided_and_noted(person: Person, page: Page, served: Served) -> None:
    person.open("/worklog", page)
    expect(page.locator("#view")).to_contain_text("We paint the tower red")
    expect(page.locator("#view")).to_contain_text("the lamp")
    with served.fabric() as fabric:
        fabric.worklog_decide("use the hemp rope", owner="pm")
    expect(page.locator("#view")).to_contain_text("use the hemp rope")
