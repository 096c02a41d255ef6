"""Workflow, graph, insights, handoffs, mail, worklog: drawn, as tables, filtered and live."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import Person
from tests.e2e.browser.served import Served, serving
from tests.e2e.browser.views import addresses, staged
from tests.support.service import workflow
from tests.support.waiting import eventually
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
    person.open(f"/graph/{middle}", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(2)
    with served.fabric() as fabric:
        child = fabric.create("Read the gauge", parent_id=middle).task_id
    expect(page.locator("#drawing [data-node]")).to_have_count(3)
    page.get_by_text("As a list").click()
    expect(page.locator(f"#node-{child}")).to_contain_text("below")
    page.locator(f"#drawing [data-node='{child}']").press("Enter")
    expect(page).to_have_url(re.compile(f"/board/tasks/{child}"))


def test_the_graph_stops_at_two_hundred_tasks_and_says_so(person: Person, page: Page, served: Served) -> None:
    with served.fabric() as fabric:
        root = fabric.create("The hub").task_id
        for number in range(210):
            fabric.create(f"Spoke {number}", depends_on=(root,))
    person.open(f"/graph/{root}?n=9999", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(200)
    expect(page.locator("#view")).to_contain_text("11 more tasks")


def test_the_graph_of_the_project_shows_what_is_connected_and_only_counts_what_is_finished(
    visitor: Visitor, alone: Served
) -> None:
    with alone.fabric() as fabric:
        done = fabric.create("Felled").task_id
        fabric.cancel(done)
        first = fabric.create("Saw it").task_id
        second = fabric.create("Plane it", depends_on=[first]).task_id
        child = fabric.create("Sand it", parent_id=second).task_id
        lonely = fabric.create("Sweep up").task_id
        closed = fabric.create("Draw it", review=False).task_id
        fabric.dep_add(first, blocker_id=closed)
        fabric.complete(closed, run=fabric.claim(closed, agent="ada").run_id, agent="ada", summary="drawn")
    person = visitor(alone)
    person.enter()
    page = person.open("/graph")
    nodes = page.locator("#drawing [data-node]")
    expect(nodes).to_have_count(3)
    expect(page.locator(f"#drawing [data-node='{first}']")).to_contain_text("after 1 finished")
    expect(page.locator(f"#drawing [data-node='{first}']")).to_have_class(re.compile("s-ready"))
    expect(page.locator(f"#drawing [data-node='{second}']")).to_have_class(re.compile("s-waiting"))
    expect(page.locator(f"#drawing [data-node='{second}'] .second")).to_contain_text("waiting")
    page.get_by_text("1 task is connected with no other").click()
    expect(page.locator(f"#node-{lonely}")).to_be_visible()
    page.get_by_label("finished, too").check()
    expect(nodes).to_have_count(4)
    expect(page).to_have_url(re.compile("finished=1"))
    page.locator(f"#drawing [data-node='{child}']").press("Enter")
    expect(page).to_have_url(re.compile(f"/board/tasks/{child}"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Sand it")


def test_no_box_of_a_drawing_is_too_small_for_its_text(visitor: Visitor, alone: Served) -> None:
    with alone.fabric() as fabric:
        first = fabric.create("W" * 80).task_id
        fabric.create("Rewire the keeper's house, and mind the telegraph", depends_on=[first])
    person = visitor(alone)
    person.enter()
    page = person.open("/graph")
    over = """all => all.filter((one) => {
      const box = one.querySelector("rect").getBoundingClientRect();
      return [...one.querySelectorAll("text")].some((text) => text.getBoundingClientRect().right > box.right);
    }).length"""
    expect(page.locator("#drawing .first").nth(1)).to_contain_text("Rewire the")
    assert page.locator("#drawing [data-node]").evaluate_all(over) == 0


def test_a_drawing_goes_from_top_to_bottom_on_a_phone_and_across_on_a_wide_screen(
    visitor: Visitor, alone: Served
) -> None:
    with alone.fabric() as fabric:
        first = fabric.create("Step 0").task_id
        fabric.create("Step 1", depends_on=[first])
    person = visitor(alone, viewport={"width": 390, "height": 844})
    person.enter()
    page = person.open("/graph")
    boxes = page.locator("#drawing rect")

    def sides(name: str) -> int:
        return len(set(boxes.evaluate_all("(all, name) => all.map(one => one.getAttribute(name))", name)))

    expect(boxes).to_have_count(2)
    assert (sides("x"), sides("y")) == (1, 2)
    page.set_viewport_size({"width": 1360, "height": 900})
    eventually(lambda: (sides("x"), sides("y")) == (2, 1), "a drawing across")


def test_the_drawing_is_made_larger_smaller_and_as_it_fits(visitor: Visitor, alone: Served) -> None:
    with alone.fabric() as fabric:
        last = fabric.create("Step 0").task_id
        for number in range(1, 8):
            last = fabric.create(f"Step {number}", depends_on=[last]).task_id
    person = visitor(alone, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    person.enter()
    page = person.open("/graph")

    def width() -> int:
        return int(page.locator("#drawing svg").get_attribute("width") or 0)

    expect(page.locator("#drawing svg")).to_be_visible()
    fits = width()
    page.get_by_role("button", name="Larger").tap()
    assert width() > fits
    page.get_by_role("button", name="Fit").tap()
    assert width() == fits
    page.get_by_role("button", name="Smaller").tap()
    assert width() < fits


def test_the_graph_of_a_large_project_stops_at_two_hundred_tasks_and_says_so(visitor: Visitor, alone: Served) -> None:
    with alone.fabric() as fabric:
        for number in range(101):
            first = fabric.create(f"First {number}").task_id
            fabric.create(f"Second {number}", depends_on=[first])
    person = visitor(alone)
    person.enter()
    page = person.open("/graph")
    expect(page.locator("#drawing [data-node]")).to_have_count(200)
    expect(page.locator("#view")).to_contain_text("2 more tasks are not shown")
    page.get_by_label("Text").fill("Second 100")
    page.keyboard.press("Enter")
    expect(page.locator("#alone")).to_contain_text("Second 100")


def test_the_timeline_tells_waiting_from_working_also_as_a_table(person: Person, page: Page, served: Served) -> None:
    task = scenes.question(served, "Choose the paint")
    person.open("/insights?days=1&by=task", page)
    page.get_by_text("The runs as a table").click()
    row = page.locator("#runs tr", has_text="Choose the paint")
    expect(row).to_contain_text("running")
    expect(page.locator("#lanes svg rect.bar-waited").first).to_be_attached()
    with served.fabric() as fabric:
        fabric.answer(task, text="red")
        fabric.cancel(task)
    expect(row).to_contain_text("cancelled")
    page.get_by_label("Runs by").select_option("agent")
    expect(page).to_have_url(re.compile("by=agent"))
    expect(page.locator(".lane-name", has_text="ada").first).to_be_visible()


def test_the_flow_is_charted_and_stands_below_as_a_table(person: Person, page: Page, served: Served) -> None:
    person.open("/insights?days=7", page)
    expect(page.locator("#cumulative canvas")).to_be_visible()
    expect(page.locator("#throughput canvas")).to_be_visible()
    legend, last = page.locator("#throughput .u-legend"), page.locator("#as-table tbody tr").first.locator("th")
    expect(legend).to_contain_text(str(last.text_content()))
    page.locator("#throughput .u-over").hover(position={"x": 1, "y": 20})
    expect(legend).not_to_contain_text(str(last.text_content()))
    page.get_by_role("heading", level=1).hover()
    expect(legend).to_contain_text(str(last.text_content()))
    expect(page.locator("#times")).to_contain_text("since they were created")
    expect(page.locator("#by-agent")).to_contain_text("ada")
    page.get_by_text("The charts as a table").click()
    expect(page.locator("#as-table tbody tr")).to_have_count(7)
    page.get_by_label("The last").select_option("14")
    expect(page.locator("#as-table tbody tr")).to_have_count(14)
    expect(page.locator("#cumulative canvas")).to_be_visible()
    expect(page).to_have_url(re.compile("days=14"))


def test_handoffs_are_listed_and_filtered(person: Person, page: Page, served: Served) -> None:
    person.open("/activity?kind=handoff", page)
    expect(page.locator("#handoffs li", has_text="two eyes more")).to_contain_text("bob")
    page.get_by_label("State").select_option("completed")
    expect(page.locator("#handoffs")).not_to_contain_text("two eyes more")
    expect(page).to_have_url(re.compile("state=completed"))


def test_mail_is_listed_and_what_was_opened_stays_open_when_more_comes(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/activity?kind=mail", page)
    page.locator("#messages summary", has_text="Oil").click()
    expect(page.locator("#messages em")).to_have_text("much")
    with served.fabric() as fabric:
        fabric.mail_send("ada", "Which rope?", from_agent="bob")
    expect(page.locator("#messages")).to_contain_text("Which rope?")
    expect(page.locator("#messages em")).to_be_visible()


def test_the_worklog_shows_what_is_pinned_decided_and_noted(person: Person, page: Page, served: Served) -> None:
    person.open("/activity?kind=worklog", page)
    expect(page.locator("#view")).to_contain_text("We paint the tower red")
    expect(page.locator("#view")).to_contain_text("the lamp")
    with served.fabric() as fabric:
        fabric.worklog_decide("use the hemp rope", owner="pm")
    expect(page.locator("#view")).to_contain_text("use the hemp rope")
