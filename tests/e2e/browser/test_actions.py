"""Everything that can be done from the page, done with a mouse; what cannot be undone asks first."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.person import Person
from tests.e2e.browser.served import Served
from tests.support.waiting import eventually


def _task(person: Person, page: Page, task_id: str) -> Page:
    return person.open(f"/tasks/{task_id}", page)


def _press(page: Page, action: str) -> None:
    """The button of an action on the page of a task."""
    page.locator(f".actions [data-action={action}]").click()
    expect(page.locator("#dialog")).to_be_visible()


def _send(page: Page) -> None:
    page.locator("#dialog button[type=submit]").click()
    expect(page.locator("#dialog")).to_be_hidden()


def _assert_becomes(served: Served, task_id: str, status: str) -> None:
    eventually(lambda: scenes.status(served, task_id) == status, f"{task_id} in {status}")


def _badge(page: Page, status: str) -> None:
    expect(page.locator("article .badge").first).to_have_text(re.compile(status))


def test_an_approval_finishes_the_task(person: Person, page: Page, served: Served) -> None:
    task = scenes.gate(served)
    _task(person, page, task)
    _press(page, "approve")
    page.get_by_label("Why").fill("It burns")
    _send(page)
    expect(page.locator("#toasts")).to_contain_text("approved")
    _badge(page, "done|completed")
    _assert_becomes(served, task, "done")


def test_a_rejection_sends_the_work_back_with_what_is_in_the_way(person: Person, page: Page, served: Served) -> None:
    task = scenes.gate(served)
    _task(person, page, task)
    _press(page, "reject")
    page.get_by_label("What is in the way").fill("the lamp flickers\nthe door sticks")
    _send(page)
    _assert_becomes(served, task, "ready")
    with served.fabric() as fabric:
        rejected = [event for event in fabric.events(task_id=task) if "the door sticks" in str(event.payload)]
    assert rejected
    assert "the lamp flickers" in str(rejected[0].payload)


def test_a_rejection_without_a_blocker_is_not_sent(person: Person, page: Page, served: Served) -> None:
    task = scenes.gate(served)
    _task(person, page, task)
    _press(page, "reject")
    page.locator("#dialog button[type=submit]").click()
    expect(page.get_by_label("What is in the way")).to_be_focused()
    expect(page.locator("#dialog")).to_be_visible()
    assert scenes.status(served, task) == "review"


def test_an_answer_reaches_the_agent_that_asked(person: Person, page: Page, served: Served) -> None:
    task = scenes.question(served)
    _task(person, page, task)
    expect(page.locator("#view")).to_contain_text("Which colour?")
    _press(page, "answer")
    page.locator("#dialog").get_by_label("Answer").fill("red and white")
    _send(page)

    def answered() -> bool:
        with served.fabric() as fabric:
            return "red and white" in str(fabric.show(task).get("questions"))

    eventually(answered, "the answer")


def test_a_comment_appears_without_a_reload_and_empties_its_field(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served)
    _task(person, page, task)
    field = page.locator("#comment-text")
    field.fill("Mind the *tide*")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#comments em")).to_have_text("tide")
    expect(field).to_have_value("")


def test_a_cancellation_asks_first_and_can_be_thought_better_of(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served)
    _task(person, page, task)
    _press(page, "cancel")
    page.locator("#dialog [data-close]").click()
    expect(page.locator("#dialog")).to_be_hidden()
    assert scenes.status(served, task) == "ready"
    _press(page, "cancel")
    _send(page)
    _assert_becomes(served, task, "cancelled")


def test_a_running_task_is_released_after_a_question(person: Person, page: Page, served: Served) -> None:
    task, _run = scenes.running(served)
    _task(person, page, task)
    _press(page, "release")
    expect(page.locator("#dialog")).to_contain_text("The run ends")
    _send(page)
    _assert_becomes(served, task, "ready")


def test_a_task_is_blocked_and_unblocked(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served)
    _task(person, page, task)
    _press(page, "block")
    page.get_by_label("Why").fill("no paint")
    _send(page)
    expect(page.locator("#view")).to_contain_text("no paint")
    _press(page, "unblock")
    _send(page)
    _assert_becomes(served, task, "ready")


def test_a_task_is_created_with_all_that_the_form_asks(person: Person, page: Page, served: Served) -> None:
    before = scenes.waiting(served, "First this")
    person.open("/tasks", page)
    page.get_by_role("link", name="New task").click()
    form = page.locator("#dialog form")
    form.get_by_label("Title").fill("Order new oil")
    form.get_by_label("Description").fill("Forty *barrels*")
    form.locator("summary").click()
    form.get_by_label("Priority").select_option("high")
    form.get_by_label("Tags").fill("supply oil")
    form.get_by_label("Agent").fill("ada")
    form.get_by_label("After").fill(before)
    _send(page)
    made = page.locator("#cards-waiting .card", has_text="Order new oil")
    expect(made).to_be_visible()
    with served.fabric() as fabric:
        task = fabric.get(str(made.get_attribute("data-task")))
    assert task.priority == "high"
    assert task.depends_on == (before,)
    assert set(task.routing.tags) == {"supply", "oil"}
    assert "Forty *barrels*" in task.body


def test_a_task_is_edited(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, brief="The old text")
    _task(person, page, task)
    _press(page, "edit")
    page.get_by_label("Title").fill("Write the chart of the bay")
    expect(page.get_by_label("Description")).to_have_value("The old text")
    page.get_by_label("Description").fill("The new text")
    _send(page)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Write the chart of the bay")
    expect(page.locator(".prose").first).to_contain_text("The new text")


def test_two_tasks_are_linked_and_unlinked(person: Person, page: Page, served: Served) -> None:
    first, second = scenes.waiting(served, "First"), scenes.waiting(served, "Second")
    _task(person, page, second)
    _press(page, "link")
    page.get_by_label("How they are connected").select_option("blocked_by")
    page.get_by_label("With").fill(first)
    _send(page)
    expect(page.locator(".relations")).to_contain_text("First")
    page.get_by_role("link", name="Unlink…").click()
    expect(page.locator("#dialog")).to_be_visible()
    page.get_by_label("With").select_option(first)
    _send(page)
    expect(page.locator(".relations")).to_have_count(0)


def test_a_link_to_a_task_that_does_not_exist_says_so_and_keeps_what_was_typed(
    person: Person, page: Page, served: Served
) -> None:
    person.watch.forgive("status of 404", "status of 422")
    task = scenes.waiting(served)
    _task(person, page, task)
    _press(page, "link")
    page.get_by_label("With").fill("TASK-2001-01-01-999")
    page.locator("#dialog button[type=submit]").click()
    expect(page.locator("#dialog .problem")).to_contain_text("TASK-2001-01-01-999")
    expect(page.get_by_label("With")).to_have_value("TASK-2001-01-01-999")


def test_many_tasks_are_cancelled_at_once_after_a_preview(person: Person, page: Page, served: Served) -> None:
    tasks = [scenes.waiting(served, f"Heap {number}", tags=["heap"]) for number in range(3)]
    person.open("/tasks?tag=heap", page)
    for task in tasks[:2]:
        page.get_by_label(f"Select {task}").check()
    expect(page.locator("#bulk")).to_contain_text("2 selected")
    page.locator("[data-bulk=cancel]").click()
    expect(page.locator("#dialog")).to_contain_text("Heap 0")
    page.get_by_label("Why").fill("no longer wanted")
    page.get_by_role("button", name="Cancel 2").click()
    expect(page.locator("#dialog")).to_be_hidden()
    for task in tasks[:2]:
        _assert_becomes(served, task, "cancelled")
    assert scenes.status(served, tasks[2]) == "ready"


def test_many_tasks_are_retried_at_once(person: Person, page: Page, served: Served) -> None:
    tasks = [scenes.dead(served, f"Wreck {number}", tags=["wreck"]) for number in range(2)]
    person.open("/tasks?tag=wreck&open=deadletter", page)
    for task in tasks:
        page.get_by_label(f"Select {task}").check()
    page.locator("[data-bulk=retry]").click()
    page.get_by_role("button", name="Retry 2").click()
    expect(page.locator("#dialog")).to_be_hidden()
    for task in tasks:
        _assert_becomes(served, task, "ready")
