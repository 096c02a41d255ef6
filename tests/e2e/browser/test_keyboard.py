"""Everything works without a mouse."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.person import Person, card, shows
from tests.e2e.browser.served import Served
from tests.support.waiting import eventually


def test_a_gate_is_approved_by_keyboard_alone_and_the_next_item_is_at_hand(
    person: Person, page: Page, served: Served
) -> None:
    task = scenes.gate(served, "Approve me by keyboard")
    person.open("/", page)
    item = page.locator(f"[data-item][data-task={task}]").first
    page.keyboard.press("ArrowDown")
    for _ in range(page.locator("[data-item]").count()):
        if item.evaluate("one => one.contains(document.activeElement)"):
            break
        page.keyboard.press("ArrowDown")
    assert item.evaluate("one => one.contains(document.activeElement)")
    page.keyboard.press("a")
    expect(item.locator("[data-action=approve]")).to_be_focused()
    page.keyboard.press("Enter")
    eventually(lambda: scenes.status(served, task) == "done", "the approval")
    expect(item).to_have_count(0)
    expect(page.locator("#dialog")).to_be_hidden()


def test_the_slash_goes_to_the_search_and_enter_searches(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, "A needle in the hay")
    other = scenes.waiting(served, "Only hay")
    person.open("/", page)
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("needle")
    page.keyboard.press("Enter")
    expect(card(page, task)).to_be_visible()
    expect(card(page, other)).to_have_count(0)


def test_the_question_mark_shows_the_keys_and_escape_goes_back(person: Person, page: Page) -> None:
    person.open("/tasks", page)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_arrows_go_through_the_columns_and_enter_opens_the_task(person: Person, page: Page, served: Served) -> None:
    first = scenes.waiting(served, "Arrow one", tags=["arrows"], priority="high")
    second = scenes.waiting(served, "Arrow two", tags=["arrows"])
    third = scenes.gate(served, "Arrow three", tags=["arrows"])
    person.open("/tasks?tag=arrows", page)
    page.keyboard.press("ArrowDown")
    expect(card(page, first).locator("a.card-title")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(card(page, second).locator("a.card-title")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(card(page, third).locator("a.card-title")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url("**/board/tasks/TASK-*")


def test_a_task_is_moved_by_the_menu(person: Person, page: Page, served: Served) -> None:
    task = scenes.blocked(served, "Move me by menu", tags=["menu"])
    person.open("/tasks?tag=menu", page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("m")
    expect(page.locator("#dialog .menu")).to_be_visible()
    page.locator("#dialog .menu").get_by_role("link", name="ready").press("Enter")
    expect(page.locator("#dialog form")).to_be_visible()
    page.locator("#dialog button[type=submit]").press("Enter")
    shows(page, task, "ready")


def test_the_menu_never_offers_an_approval(person: Person, page: Page, served: Served) -> None:
    task = scenes.gate(served, "Gate with a menu", tags=["gate-menu"])
    person.open("/tasks?tag=gate-menu", page)
    card(page, task).locator(".move").click()
    expect(page.locator("#dialog .menu")).to_be_visible()
    expect(page.locator("#dialog .menu a", has_text="done")).to_have_count(0)
    expect(page.locator("#dialog .menu a", has_text="approve")).to_have_count(0)


def test_single_keys_can_be_switched_off(person: Person, page: Page) -> None:
    person.open("/", page)
    page.keyboard.press("?")
    page.locator("#shortcuts").uncheck()
    page.locator("#help").get_by_role("button", name="Close").click()
    page.keyboard.press("/")
    expect(page.locator("#search")).not_to_be_focused()


def test_two_keys_go_to_each_view(person: Person, page: Page) -> None:
    person.open("/", page)
    keys = page.locator("nav[aria-label=Views] a[data-key]").evaluate_all("all => all.map(one => one.dataset.key)")
    assert len(keys) == len(set(keys)) >= 4
    for key in keys:
        target = page.locator(f"nav[aria-label=Views] a[data-key='{key}']").evaluate("one => one.href")
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(target)
        page.wait_for_selector("#connection[data-state=live]")
        expect(page.locator(f"nav a[data-key='{key}']")).to_have_attribute("aria-current", "page")
