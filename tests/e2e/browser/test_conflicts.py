"""Two people at one task: nobody overwrites anybody unseen, and nothing that was typed is lost."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import Person
from tests.e2e.browser.served import Served

_RESIZE = "one => { one.style.height = '300px'; }"  # as its handle does


def _edit(person: Person, page: Page, task: str) -> None:
    person.open(f"/tasks/{task}", page)
    page.locator(".actions [data-action=edit]").click()
    expect(page.get_by_label("Description")).to_be_visible()


def test_of_two_editors_the_second_sees_both_texts_and_may_still_save(
    visitor: Visitor, person: Person, page: Page, served: Served
) -> None:
    task = scenes.waiting(served, "Two at once", brief="The first text")
    other = visitor(served)
    other.enter()
    there = other.context.new_page()
    other.watch.forgive("status of 409")
    _edit(person, page, task)
    _edit(other, there, task)
    page.get_by_label("Description").fill("What the first one wrote")
    page.locator("#dialog button[type=submit]").click()
    expect(page.locator("#dialog")).to_be_hidden()

    there.get_by_label("Description").evaluate(_RESIZE)
    there.get_by_label("Description").fill("What the second one wrote")
    there.locator("#dialog button[type=submit]").click()
    expect(there.locator("#dialog .conflict")).to_be_visible()
    expect(there.get_by_label("Description")).to_have_value("What the second one wrote")
    expect(there.locator("#dialog .now")).to_contain_text("What the first one wrote")
    with served.fabric() as fabric:
        assert "What the first one wrote" in fabric.get(task).body

    there.locator("#dialog button[type=submit]").click()
    expect(there.locator("#dialog")).to_be_hidden()
    expect(page.locator(".prose").first).to_contain_text("What the second one wrote")


def test_an_approval_of_work_that_has_changed_since_is_not_done_unseen(
    person: Person, page: Page, served: Served
) -> None:
    person.watch.forgive("status of 4(09|22)")
    task = scenes.gate(served, "Seen too early")
    person.open(f"/tasks/{task}", page)
    page.locator(".actions [data-action=approve]").click()
    expect(page.locator("#dialog form")).to_be_visible()
    with served.fabric() as fabric:
        fabric.edit(task, title="Seen too early, now with another title")
    page.locator("#dialog button[type=submit]").click()
    expect(page.locator("#dialog .problem")).to_be_visible()
    expect(page.locator("#dialog")).to_contain_text("now with another title")
    assert scenes.status(served, task) == "review"


def test_a_form_sent_twice_counts_once(person: Person, page: Page, served: Served) -> None:
    person.open("/tasks", page)
    page.get_by_role("link", name="New task").click()
    page.get_by_label("Title").fill("Only once, please")
    page.locator("#dialog button[type=submit]").dblclick()
    expect(page.locator("#dialog")).to_be_hidden()
    expect(page.locator(".card", has_text="Only once, please").first).to_be_visible()
    with served.fabric() as fabric:
        assert fabric.list(search="Only once, please").total == 1


def test_a_comment_is_never_a_conflict(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, "Much discussed")
    person.open(f"/tasks/{task}", page)
    page.locator("#comment-text").fill("from the page")
    with served.fabric("bob") as fabric:
        fabric.comment(task, text="from elsewhere")
    expect(page.locator("#comments")).to_contain_text("from elsewhere")
    expect(page.locator("#comment-text")).to_have_value("from the page")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#comments")).to_contain_text("from the page")


def test_a_field_that_was_made_larger_stays_so_while_the_page_changes(
    person: Person, page: Page, served: Served
) -> None:
    task = scenes.waiting(served, "Room to write")
    person.open(f"/tasks/{task}", page)
    field = page.locator("#comment-text")
    field.evaluate(_RESIZE)
    with served.fabric("bob") as fabric:
        fabric.comment(task, text="from elsewhere")
    expect(page.locator("#comments")).to_contain_text("from elsewhere")
    assert field.evaluate("one => one.offsetHeight") == 300
