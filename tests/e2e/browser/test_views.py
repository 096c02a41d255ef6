"""What needs a person, the board, one task, agents, activity; and what holds for every view."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from aof.surfaces.board.app import VIEWS
from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import LIVE, Person, card
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


def test_no_view_scrolls_in_two_places_at_once(visitor: Visitor, served: Served) -> None:
    person = visitor(served, viewport={"width": 1300, "height": 850})
    person.enter()
    page = person.context.new_page()
    beside = {}
    for name, path in addresses(served).items():
        person.open(path, page)
        higher = page.evaluate("document.documentElement.scrollHeight - document.documentElement.clientHeight")
        if higher > 0:
            beside[name] = higher
    assert beside == {}


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


def test_the_board_has_a_column_for_each_status_and_what_is_over_is_collapsed(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/tasks", page)
    columns = page.locator(".column").evaluate_all("all => all.map(one => one.id)")
    names = ("backlog", "waiting", "ready", "in-progress", "review", "blocked", "deadletter", "done", "cancelled")
    assert columns == [f"column-{name}" for name in names]
    expect(page.locator("#column-deadletter")).to_contain_text("given up 1")
    done = _task(served, "Clean the lens")
    expect(card(page, done)).to_have_count(0)
    page.locator("#column-done").get_by_role("link", name="done").click()
    expect(card(page, done)).to_be_visible()
    assert "open=done" in page.url


def test_a_column_that_was_opened_is_open_the_next_time(person: Person, page: Page, served: Served) -> None:
    person.open("/tasks", page)
    page.locator("[data-open=cancelled]").click()
    expect(page).to_have_url(re.compile("open=cancelled"))
    person.open("/agents", page)
    person.open("/tasks", page)
    parrot = card(page, _task(served, "Buy a parrot"))
    expect(parrot).to_be_visible()
    page.locator("[data-open=cancelled]").click()
    expect(parrot).to_have_count(0)
    person.open("/tasks", page)
    expect(page.locator("#column-cancelled.closed")).to_be_visible()
    expect(page).to_have_url(re.compile("tasks$"))


def test_what_is_ready_stands_apart_from_what_waits_and_says_for_what(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/tasks", page)
    tower = page.locator("#cards-waiting").locator(".card", has_text="Paint the tower")
    expect(tower.locator(".why")).to_contain_text(re.compile(r"waits for \d\d-\d\d-\d+, which is in review"))
    expect(tower.locator("time")).to_be_visible()
    lamp = _task(served, "Repair the lamp")
    expect(tower.locator(".why a")).to_have_attribute("href", f"/board/tasks/{lamp}")
    expect(page.locator("#cards-ready", has_text="Paint the tower")).to_have_count(0)


def test_cards_say_how_far_a_task_is_who_did_it_and_whom_it_is_for(person: Person, page: Page, served: Served) -> None:
    parent = scenes.waiting(served, "Build a pier", agent=None, role="reviewer")
    parts = [scenes.waiting(served, f"Pile {number}", parent_id=parent) for number in range(3)]
    with served.fabric() as fabric:
        fabric.cancel(parts[0])
    person.open("/tasks", page)
    tide = page.locator("#cards-in-progress .card", has_text="Measure the tide")
    expect(tide).to_contain_text("50 % half of the buoys read")
    expect(tide.locator(".tag")).to_have_text("survey")
    expect(page.locator("#cards-review .card", has_text="Repair the lamp")).to_contain_text("by ada")
    expect(card(page, parent)).to_contain_text("for role reviewer")
    expect(card(page, parent)).to_contain_text("0 of 3")
    expect(card(page, parts[1])).to_contain_text("for ada")
    expect(card(page, parts[1]).get_by_role("link", name="Build a pier")).to_be_visible()
    page.locator("#column-deadletter [data-open]").click()
    expect(page.locator("#cards-deadletter .card")).to_contain_text("after 1 attempt")


def test_tasks_can_be_grouped_by_agent_and_by_parent(person: Person, page: Page, served: Served) -> None:
    parent = scenes.waiting(served, "Plan the feast", tags=["feast"])
    child = scenes.waiting(served, "Bake a cake", tags=["feast"], agent="bob", parent_id=parent)
    person.open("/tasks?tag=feast", page)
    page.get_by_label("Group by").select_option("agent")
    expect(page).to_have_url(re.compile("group=agent"))
    expect(page.locator("#cards-ready > li").first).to_have_text(re.compile("ada"))
    expect(page.locator("#cards-ready > .group")).to_have_count(2)
    page.get_by_label("Group by").select_option("parent")
    expect(page.locator("#cards-ready > li").first).to_contain_text("Plan the feast")
    expect(page.locator("#cards-ready > li").nth(1)).to_have_id(f"card-{child}")
    page.reload()
    page.wait_for_selector(LIVE)  # before that, nobody hears the keys
    expect(page.locator("#cards-ready > .group").last).to_contain_text("on their own")
    page.locator(f"#card-{child} .card-title").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(f"#card-{parent} .card-title")).to_be_focused()


def test_filters_apply_at_once_and_leave_a_short_address(person: Person, page: Page, served: Served) -> None:
    person.open("/tasks", page)
    expect(page.locator("#filters button")).to_have_count(0)
    offered = page.locator("#agents option").evaluate_all("all => all.map(one => one.value)")
    assert {"ada", "bob"} <= set(offered)
    page.locator("#filters [name=tag]").fill("surve")
    page.locator("#filters [name=tag]").fill("survey")
    expect(page).to_have_url(re.compile(r"tasks\?tag=survey$"))
    expect(page.locator("#cards-in-progress .card")).to_have_count(1)
    page.get_by_role("link", name="clear").click()
    expect(page).to_have_url(re.compile("tasks$"))


def test_one_search_on_every_view_finds_titles_texts_comments_and_ids(
    person: Person, page: Page, served: Served
) -> None:
    lamp = _task(served, "Repair the lamp")
    for said in ("repair", "wick", "glass", lamp[len("TASK-2026-") :]):
        person.open("/agents", page)
        page.keyboard.press("/")
        page.keyboard.type(said)
        page.keyboard.press("Enter")
        expect(card(page, lamp)).to_be_visible()
        expect(page.locator("#search")).to_have_value(said)
    page.locator("#search").fill("lens")
    expect(card(page, _task(served, "Clean the lens"))).to_be_visible()
    expect(page).to_have_url(re.compile(r"q=lens$"))


def test_filters_are_in_the_address_and_survive_a_reload(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, "Seven filters hold", tags=["seven"], priority="high", owner="pm", due="2026-01-02")
    asked = "q=filters&agent=ada&tag=seven&priority=high&overdue=1&open=done,cancelled&n-ready=60"
    person.open(f"/tasks?{asked}", page)
    expect(page.locator(".card")).to_have_count(1)
    page.reload()
    expect(page.locator(".card")).to_have_count(1)
    expect(card(page, task)).to_be_visible()
    form, search = page.locator("#filters"), page.locator("#search")
    expect(search).to_have_value("filters")
    expect(form.locator("[name=agent]")).to_have_value("ada")
    expect(form.locator("[name=tag]")).to_have_value("seven")
    expect(form.locator("[name=priority]")).to_have_value("high")
    expect(form.locator("[name=overdue]")).to_be_checked()
    search.fill("nothing like it")
    expect(page).to_have_url(re.compile("q=nothing.*tag=seven"))
    expect(page.locator(".card")).to_have_count(0)


def test_a_task_shows_its_brief_runs_relations_and_history(person: Person, page: Page, served: Served) -> None:
    person.open(f"/tasks/{_task(served, 'Repair the lamp')}", page)
    expect(page.locator(".prose em").first).to_have_text("wick")
    expect(page.get_by_role("region", name="Runs")).to_contain_text("ada")
    expect(page.locator(".relations")).to_contain_text("Paint the tower")
    expect(page.locator(".history li").last).to_contain_text("pm created it")


def test_a_task_begins_with_its_report_and_what_has_changed_since_the_last_one(
    person: Person, page: Page, served: Served
) -> None:
    task, run = scenes.running(served, "Mend the bell")
    first = {"total": 3, "passed": 2, "failed": 1}
    with served.fabric("ada") as fabric:
        fabric.complete(task, run=run, agent="ada", summary="It rings.", tests=first, deliverables=["outputs/bell.md"])
    with served.fabric() as fabric:
        fabric.reject(task, blockers=["it rings twice"])
    with served.fabric("ada") as fabric:
        run = fabric.claim(task, agent="ada").run_id
        fabric.progress(task, run=run, agent="ada", text="nearly", percent=90)
        tests = {"total": 3, "passed": 3}
        fabric.complete(task, run=run, agent="ada", summary="Once.", tests=tests, deliverables=["outputs/clapper.md"])
    person.open(f"/tasks/{task}", page)
    report = page.locator(".task-body section").first
    expect(report.get_by_role("heading", name="Report")).to_be_visible()
    expect(report).to_contain_text("3 of 3 tests passed before: 2 of 3")
    expect(report.locator("ins")).to_have_text("outputs/clapper.md")
    expect(report.locator("del")).to_have_text("outputs/bell.md")
    expect(report.locator("summary")).to_contain_text("Run 1 by ada")
    expect(report.locator("summary")).to_contain_text("sent back by pm: it rings twice")
    expect(page.locator(".task-head")).not_to_contain_text("90 %")
    expect(page.locator(".actions .primary")).to_have_text("Approve")
    expect(page.locator(".history li").first).to_contain_text("ada finished it: Once.")


def test_a_task_shows_its_parts_and_what_it_waits_for_with_their_status(
    person: Person, page: Page, served: Served
) -> None:
    before = scenes.blocked(served, "Find a ladder")
    task = scenes.waiting(served, "Hang the lantern", depends_on=(before,))
    part = scenes.running(served, "Drive in a nail", parent_id=task)[0]
    person.open(f"/tasks/{task}", page)
    expect(page.locator("#subtasks")).to_contain_text("0 of 1 done")
    expect(page.locator("#subtasks li")).to_have_text(re.compile(r"in progress\s+Drive in a nail"))
    expect(page.locator(f"#subtasks a[href$='{part}']")).to_be_visible()
    expect(page.get_by_role("region", name="Relations")).to_contain_text(re.compile(r"waits for\s+blocked\s+Find a"))
    expect(page.locator(".task-head .badge").first).to_have_text("waiting")


def test_a_task_that_was_given_up_says_after_how_many_attempts(person: Person, page: Page, served: Served) -> None:
    person.open(f"/tasks/{_task(served, 'Reach the reef')}", page)
    expect(page.locator(".task-head")).to_contain_text("gave up after 1 attempt: the boat leaks")
    expect(page.locator("#view")).not_to_contain_text("deadletter")


def test_a_new_task_asks_for_title_and_text_and_for_the_rest_on_demand(
    person: Person, page: Page, served: Served
) -> None:
    person.open("/tasks", page)
    page.keyboard.press("c")
    dialog = page.locator("#dialog")
    expect(dialog.get_by_label("Title")).to_be_focused()
    expect(dialog.get_by_label("Priority")).to_be_hidden()
    dialog.get_by_label("Title").fill("Sew a pennant")
    dialog.locator("summary").click()
    dialog.get_by_label("Tags").fill("cloth")
    dialog.get_by_role("button", name="Create").click()
    expect(page.locator("#cards-ready .card", has_text="Sew a pennant").locator(".tag")).to_have_text("cloth")


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
    scenes.gate(served, "Trim the wick")
    person.open("/activity", page)
    expect(page.get_by_role("heading", name="Today")).to_be_visible()
    expect(page.locator(".stories")).to_contain_text("ada finished Trim the wick")
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


@pytest.mark.parametrize("view", ["/activity", "/activity?kind=mail", "/graph", "/insights"])
def test_an_agent_is_completed_in_a_filter_and_applies_at_once(
    person: Person, page: Page, served: Served, view: str
) -> None:
    person.open(view, page)
    field = page.get_by_label("Agent", exact=True)
    offered = field.evaluate("one => [...one.list.options].map(option => option.value)")
    assert {"ada", "bob", "pm"} <= set(offered)
    field.press_sequentially("bob")
    expect(page).to_have_url(re.compile("agent=bob"))


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
