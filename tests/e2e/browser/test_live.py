"""The page follows the log: at once, without a gap, and without disturbing whoever types."""

from __future__ import annotations

import os
import signal

import httpx
from playwright.sync_api import Page, expect

from aof.service import serve
from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import LIVE, Person, card, shows
from tests.e2e.browser.served import Served
from tests.e2e.browser.storm import Storm

_TYPED = "Ships that pass in the night, and speak each other in passing"
# Where the field is, in every frame that is drawn.
_WATCH_PLACE = """() => {
  const field = document.activeElement;
  window.places = [];
  const look = () => {
    window.places.push(field.getBoundingClientRect().top);
    requestAnimationFrame(look);
  };
  look();
}"""


def test_a_change_made_elsewhere_appears_by_itself(person: Person, page: Page, served: Served) -> None:
    person.open("/tasks", page)
    page.evaluate("window.untouched = true")
    task = scenes.waiting(served, "Made elsewhere")
    shows(page, task, "ready")
    with served.fabric("ada") as fabric:
        fabric.claim(task, agent="ada")
    shows(page, task, "in-progress")
    assert page.evaluate("window.untouched")


def test_what_needs_a_person_appears_by_itself(person: Person, page: Page, served: Served) -> None:
    person.open("/", page)
    task = scenes.question(served, "A tower to paint", "Red or white?")
    expect(page.locator(f"[data-item][data-task={task}]").first).to_contain_text("Red or white?")


def test_typing_in_a_storm_of_updates_is_not_disturbed(alone: Served, visitor: Visitor) -> None:
    person = visitor(alone)
    person.enter()
    task = scenes.waiting(alone, "In the storm", brief="\n\n".join(f"Paragraph {n}" for n in range(60)))
    page = person.open(f"/tasks/{task}")
    field = page.locator("#comment-text")
    field.scroll_into_view_if_needed()
    field.focus()
    page.evaluate(_WATCH_PLACE)
    with Storm(alone, [task]) as storm:
        for letter in _TYPED:
            page.keyboard.type(letter)
        storm.until(lambda: expect(field).to_have_value(_TYPED), 50)
        field.evaluate("one => one.setSelectionRange(6, 10)")
        seen = str(page.locator("#view").get_attribute("data-head"))
        storm.until(lambda: expect(field).to_be_focused(), 200)
        expect(page.locator("#view")).not_to_have_attribute("data-head", seen)
        assert field.evaluate("one => [one.selectionStart, one.selectionEnd]") == [6, 10]
        assert field.input_value() == _TYPED
    expect(page.locator("#comments")).to_contain_text(f"gust {storm.count - 1}")
    places = page.evaluate("window.places")
    assert max(places) - min(places) <= 2, "the field has moved away"
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#comments")).to_contain_text(_TYPED)


def test_a_dialog_stays_as_it_is_while_the_board_changes_under_it(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, "Edited in peace")
    person.open("/tasks", page)
    card(page, task).locator("a.card-title").focus()
    page.keyboard.press("e")
    title = page.locator("#dialog").get_by_label("Title")
    title.fill("Half of a new ti")
    others = [scenes.waiting(served, f"Noise {number}") for number in range(5)]
    expect(card(page, others[-1])).to_be_attached()
    expect(title).to_have_value("Half of a new ti")
    expect(title).to_be_focused()


def test_a_dialog_that_was_closed_is_not_opened_again_by_a_change_of_the_page(
    person: Person, page: Page, served: Served
) -> None:
    person.open(f"/tasks/{scenes.waiting(served, 'Closed for good')}", page)
    dialog = page.locator("#dialog")
    for closing in ("dialog.close()", "form.dispatchEvent(new CustomEvent('aof:done', done))"):
        page.locator(".actions [data-action=edit]").click()
        expect(dialog.locator("form")).to_be_visible()
        page.evaluate(f"""() => {{
          const dialog = document.getElementById("dialog"), form = dialog.querySelector("form");
          const done = {{ bubbles: true, detail: {{ text: "done" }} }};
          {closing};
          for (const target of ["#view", ...({closing!r}.includes("done") ? [dialog] : [])]) {{
            document.dispatchEvent(new CustomEvent("htmx:after:swap", {{ detail: {{ ctx: {{ target }} }} }}));
          }}
        }}""")
        expect(dialog).to_be_hidden()
        expect(dialog.locator("form")).to_have_count(0)


def test_the_page_survives_a_service_that_is_killed_and_started_again(alone: Served, visitor: Visitor) -> None:
    person = visitor(alone)
    person.watch.forgive("net::ERR_")
    person.enter()
    page = person.open("/tasks")
    before = scenes.waiting(alone, "Before the crash")
    shows(page, before, "ready")
    alone.stop(signal.SIGKILL)
    expect(page.locator("#connection")).to_have_attribute("data-state", "offline")
    missed = scenes.waiting(alone, "While nobody served")
    alone.start()
    page.wait_for_selector(LIVE)
    shows(page, missed, "ready")
    after = scenes.waiting(alone, "After the crash")
    shows(page, after, "ready")


def test_the_page_says_so_when_the_service_falls_silent_and_goes_on_when_it_speaks_again(
    alone: Served, visitor: Visitor
) -> None:
    person = visitor(alone)
    person.enter()
    page = person.open("/tasks")
    page.evaluate("window.untouched = true")
    os.kill(alone.pid, signal.SIGSTOP)
    try:
        expect(page.locator("#connection")).to_have_attribute("data-state", "offline")
        expect(page.locator("#connection")).to_contain_text("not connected")
    finally:
        os.kill(alone.pid, signal.SIGCONT)
    page.wait_for_selector(LIVE)
    shows(page, scenes.waiting(alone, "After the silence"), "ready")
    assert page.evaluate("window.untouched")


def test_seven_tabs_are_all_live_over_one_connection(alone: Served, visitor: Visitor) -> None:
    person = visitor(alone)
    person.enter()
    pages = [person.open("/tasks") for _ in range(7)]
    task = scenes.waiting(alone, "Seen seven times")
    for page in pages:
        expect(card(page, task)).to_be_visible()
    assert _streams(alone) == 1
    for page in pages[1:]:
        page.close()
    again = scenes.waiting(alone, "Seen once")
    expect(card(pages[0], again)).to_be_visible()


def _streams(served: Served) -> int:
    """How many streams the service has open, as it counts them itself."""
    token = serve.create_token(str(served.root), "pm", None, scope="read").token
    told = httpx.get(f"{served.origin}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=20)
    line = next(one for one in told.text.splitlines() if one.startswith("aof_http_streams"))
    return int(float(line.split()[-1]))
