"""Views of work: workflow, graph, timeline, flow, handoffs, mailbox, worklog; as tables too, live, hostile text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import Person
from tests.e2e.browser.served import Served
from tests.support.service import workflow
from tests.support.workflows import hop, template

HOSTILE = "<img src=x onerror=alert(1)> \u202egnp\"' {{7*7}} </script><script>alert(2)</script>"
VIEWS = ("/workflow", "/timeline", "/graph", "/handoffs", "/mailbox", "/worklog", "/flow")
MANY = 20


@pytest.fixture(autouse=True)
def _hands_free(served: Served) -> Iterator[None]:
    """What an agent of a test holds is stopped after it: it may hold only some tasks at once."""
    yield
    with served.fabric() as fabric:
        for task in fabric.running():
            fabric.cancel(task.id)


@pytest.mark.parametrize("path", VIEWS)
def test_a_view_says_so_where_there_is_nothing_yet(visitor: Visitor, alone: Served, path: str) -> None:
    person = visitor(alone)
    person.enter()
    page = person.open(path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(f"nav[aria-label=Views] a[href='/board{path}']")).to_have_attribute("aria-current", "page")


def _flow(served: Served, count: int = 3) -> None:
    names = [f"step-{number}" for number in range(count)]
    hops = [hop(names[0], role="developer", autoAdvance=False)]
    hops += [hop(name, names[place], role="developer") for place, name in enumerate(names[1:])]
    workflow(served.root, template(*hops, name=f"steps-{count}"))


def _gated(served: Served, count: int = 3, title: str = "Rewire the fog horn") -> str:
    """A task whose first hop waits for an approval."""
    _flow(served, count)
    with served.fabric() as fabric:
        task = fabric.create(title, workflow=f"steps-{count}").task_id
        fabric.claim(task, agent="ada", hop="step-0")
        fabric.complete(task, agent="ada", outcome="complete", summary="wired")
    return task


def test_a_gate_is_approved_on_the_drawing_of_its_workflow(person: Person, page: Page, served: Served) -> None:
    task = _gated(served)
    person.open(f"/workflow/{task}", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(3)
    expect(page.locator("#drawing [data-node=step-0]")).to_have_class(re.compile("s-review"))
    page.locator("#gates [data-action=approve]").click()
    page.locator("#dialog button[type=submit]").click()
    expect(page.locator("#drawing [data-node=step-0]")).to_have_class(re.compile("s-done"))
    expect(page.locator("#drawing [data-node=step-1]")).to_have_class(re.compile("s-ready"))
    expect(page.locator("#gates")).to_have_count(0)
    with served.fabric() as fabric:
        assert fabric.get(task).workflow["hops"][0]["status"] == "done"


def test_a_hop_of_the_drawing_leads_by_keyboard_to_its_row(person: Person, page: Page, served: Served) -> None:
    task = _gated(served)
    person.open(f"/workflow/{task}", page)
    page.locator("#drawing [data-node=step-2]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#hop-step-2")).to_be_visible()
    expect(page.locator("#hop-step-2")).to_contain_text("waiting")


def test_the_longest_workflow_is_drawn_and_stays_usable(person: Person, page: Page, served: Served) -> None:
    task = _gated(served, MANY)
    person.open(f"/workflow/{task}", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(MANY, timeout=60_000)
    page.get_by_text("As a table").click()
    expect(page.locator("#as-table tbody tr")).to_have_count(MANY)
    expect(page.locator("#gates [data-action=approve]")).to_be_visible()


def test_a_task_without_a_workflow_is_told_apart_and_an_unknown_one_too(visitor: Visitor, served: Served) -> None:
    person = visitor(served)
    person.enter()
    person.watch.forgive("status of 4")
    task = scenes.waiting(served)
    page = person.context.new_page()
    for path, said in (
        (f"/workflow/{task}", "in no workflow"),
        ("/graph/nothing", "nothing"),
        ("/timeline?task=x", "x"),
    ):
        page.goto(f"{served.origin}/board{path}")
        expect(page.locator("#view")).to_contain_text(said)
        expect(page.locator("#view").get_by_role("alert")).to_be_visible()


def test_the_graph_shows_what_a_task_is_connected_with_and_grows_live(
    person: Person, page: Page, served: Served
) -> None:
    with served.fabric() as fabric:
        first = fabric.create("Order oil").task_id
        middle = fabric.create("Fill the tank", depends_on=[first]).task_id
    person.open(f"/graph/{middle}", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(2)
    with served.fabric() as fabric:
        child = fabric.create("Read the gauge", parent_id=middle).task_id
    expect(page.locator("#drawing [data-node]")).to_have_count(3)
    page.get_by_text("As a table").click()
    expect(page.locator(f"#node-{child}")).to_contain_text("child")
    page.locator(f"#drawing [data-node='{child}']").press("Enter")
    expect(page).to_have_url(re.compile(f"/board/tasks/{child}"))


def test_a_large_neighbourhood_says_what_it_left_out(person: Person, page: Page, served: Served) -> None:
    with served.fabric() as fabric:
        top = fabric.create("Sweep all rooms").task_id
        for number in range(12):
            fabric.create(f"Room {number}", parent_id=top)
    person.open(f"/graph/{top}?n=5", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(5)
    expect(page.locator("#view")).to_contain_text("8 more tasks are connected")


def test_the_timeline_keeps_waiting_apart_from_working(person: Person, page: Page, served: Served) -> None:
    task = scenes.question(served, "Choose the paint")
    person.open("/timeline?span=1h", page)
    row = page.locator("#runs tr", has_text="Choose the paint")
    expect(row).to_contain_text("running")
    expect(page.locator("rect.bar-waited").first).to_be_attached()
    with served.fabric() as fabric:
        fabric.answer(task, text="red")
        fabric.cancel(task)
    expect(row).to_contain_text("cancelled")
    page.get_by_label("By").select_option("agent")
    expect(page).to_have_url(re.compile("by=agent"))
    expect(page.locator(".lane-name", has_text="ada")).to_be_visible()


def test_the_flow_is_drawn_and_stands_in_tables(person: Person, page: Page, served: Served) -> None:
    scenes.dead(served)
    person.open("/flow?days=7", page)
    expect(page.locator("#cumulative canvas")).to_be_visible()
    expect(page.locator("#throughput canvas")).to_be_visible()
    expect(page.locator("#by-agent")).to_contain_text("ada")
    page.get_by_text("As a table").click()
    expect(page.locator("#as-table tbody tr")).to_have_count(7)
    page.get_by_label("The last").select_option("14")
    expect(page.locator("#as-table tbody tr")).to_have_count(14)
    expect(page.locator("#cumulative canvas")).to_be_visible()
    expect(page).to_have_url(re.compile("days=14"))


def test_handoffs_mail_and_worklog_are_listed_filtered_and_live(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, "Carry the ladder")
    with served.fabric() as fabric:
        fabric.handoff_new(
            type="delegation", task_id=task, from_agent="pm", to=["bob"], reason="too heavy for one", timeout="1h"
        )
        fabric.mail_send("bob", "Bring the rope", from_agent="ada", body="The **long** one.")
    person.open("/handoffs", page)
    expect(page.locator("#handoffs")).to_contain_text("too heavy for one")
    page.get_by_label("State").select_option("completed")
    expect(page.locator("#handoffs")).not_to_contain_text("too heavy for one")
    person.open("/mailbox", page)
    page.get_by_text("Bring the rope").click()
    expect(page.locator("#messages strong")).to_have_text("long")
    with served.fabric() as fabric:
        fabric.mail_send("ada", "Which rope?", from_agent="bob")
    expect(page.locator("#messages")).to_contain_text("Which rope?")
    expect(page.locator("#messages strong")).to_be_visible()  # what was opened stays open
    person.open("/worklog", page)
    with served.fabric() as fabric:
        fabric.worklog_decide("use the hemp rope", owner="pm")
    expect(page.locator("#view")).to_contain_text("use the hemp rope")


def test_text_by_others_is_only_text_in_every_view(person: Person, page: Page, served: Served) -> None:
    with served.fabric() as fabric:
        title = HOSTILE.replace("\u202e", "")
        task = fabric.create(title).task_id
        fabric.claim(task, agent="ada")
        fabric.ask(task, text=HOSTILE, agent="ada")
        fabric.mail_send("bob", "x", from_agent="ada", body=HOSTILE)
        other = fabric.create("Hand it over").task_id
        fabric.handoff_new(type="delegation", task_id=other, from_agent="pm", to=["bob"], reason=title, timeout="1h")
        fabric.worklog_add("escalation.requested", subject="x", body=HOSTILE)
    for path in (f"/graph/{task}", "/timeline", "/handoffs", "/mailbox", "/worklog", "/flow"):
        person.open(path, page)
        assert page.locator("#view img, #view script:not([type='application/json'])").count() == 0, path
    person.open(f"/graph/{task}", page)
    expect(page.locator("#drawing .first")).to_contain_text("<img src=x")


PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
DARK: dict[str, Any] = {"color_scheme": "dark"}


@pytest.mark.parametrize("options", [PHONE, DARK], ids=["phone", "dark"])
def test_every_view_is_usable_on_a_phone_and_in_the_dark(
    visitor: Visitor, served: Served, options: dict[str, Any]
) -> None:
    task, gated = scenes.waiting(served), _gated(served)
    person = visitor(served, **options)
    person.enter()
    for path in (f"/workflow/{gated}", f"/graph/{task}", *VIEWS[1:2], *VIEWS[3:]):
        page = person.open(path)
        wide: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth + 1")
        assert not wide, f"{path} is wider than the screen"
