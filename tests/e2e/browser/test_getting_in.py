"""Links, tokens and sessions: who gets in, how often, and for how long; and what a write must prove."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from aof.adapters.system import SystemClock
from aof.entrypoints import serve
from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import LIVE, Person
from tests.e2e.browser.served import Served
from tests.support.clock import ManualClock
from tests.support.served import aof

_MINUTE = 61_000
_POST = """async ([where, fields, headers]) => {
  const answer = await fetch(where, {method: "POST", headers, body: new URLSearchParams(fields)});
  return [answer.status, await answer.text()];
}"""


def test_a_link_opens_the_page_on_what_needs_a_person(served: Served, visitor: Visitor) -> None:
    page = visitor(served).sign_in()
    expect(page.locator("#view")).to_have_attribute("data-view", "needs")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Needs you")


def test_the_command_line_prints_a_link_that_works(served: Served, visitor: Visitor) -> None:
    told = aof(served.root, "board", "--web", "--no-open", "--actor", "pm")
    assert told.returncode == 0, told.stderr
    link = next(line for line in told.stdout.splitlines() if line.startswith(f"{served.origin}/board/enter?key="))
    page = visitor(served).context.new_page()
    page.goto(link.strip())
    page.wait_for_selector(LIVE)
    expect(page.locator("footer .who")).to_contain_text("pm")


def test_a_link_works_once(served: Served, visitor: Visitor) -> None:
    link = served.link()
    first, second = visitor(served), visitor(served)
    page = first.context.new_page()
    page.goto(link)
    page.wait_for_selector(LIVE)
    second.watch.forgive("status of 401")
    refused = second.context.new_page()
    refused.goto(link)
    expect(refused.locator(".problem")).to_contain_text("good once")
    expect(refused.locator(".problem")).to_contain_text("aof board --web")
    assert second.context.cookies() == []


def test_a_link_is_too_old_after_a_minute(served: Served, visitor: Visitor) -> None:
    person = visitor(served)
    person.watch.forgive("status of 401")
    page = person.context.new_page()
    page.goto(served.link(clock=ManualClock(SystemClock().now() - _MINUTE)))
    expect(page.locator(".problem")).to_contain_text("aof board --web")
    expect(page.get_by_label("Token")).to_be_visible()


def test_the_cookie_is_out_of_reach_for_scripts_and_for_other_sites(served: Served, visitor: Visitor) -> None:
    person = visitor(served)
    page = person.sign_in()
    (cookie,) = person.context.cookies()
    assert cookie.get("httpOnly") is True
    assert cookie.get("sameSite") == "Strict"
    assert str(cookie.get("name")).startswith("aof_")
    assert page.evaluate("document.cookie") == ""


def test_whoever_is_not_in_is_asked_to_sign_in_and_then_sees_the_page_they_wanted(
    visitor: Visitor, served: Served
) -> None:
    person = visitor(served)
    person.watch.forgive("status of 401")
    token = serve.create_token(str(served.root), "pm", None, scope="lead").token
    page = person.context.new_page()
    page.goto(f"{served.origin}/board/activity?type=task.created")
    if page.get_by_label("Token").count() == 0:
        page.get_by_role("link", name=re.compile("sign in", re.IGNORECASE)).first.click()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{served.origin}/board/activity?type=task.created")
    page.wait_for_selector(LIVE)
    expect(page.locator("footer .who")).to_contain_text("lead")


def test_a_wrong_token_is_refused_with_the_command_that_makes_one(served: Served, visitor: Visitor) -> None:
    person = visitor(served)
    person.watch.forgive("status of 401")
    page = person.context.new_page()
    page.goto(f"{served.origin}/board/login")
    page.get_by_label("Token").fill("aof_00000000_nothing")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".problem")).to_contain_text("aof token create")


def test_a_reader_is_offered_nothing_that_writes(served: Served, visitor: Visitor) -> None:
    task = scenes.gate(served)
    person = visitor(served)
    page = person.sign_in(actor="pm", scope="read")
    person.open(f"/tasks/{task}", page)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("[data-action=approve], [data-action=cancel], #comment-form")).to_have_count(0)
    expect(page.get_by_role("link", name="New task")).to_have_count(0)


def test_signing_out_ends_the_session_in_all_tabs(served: Served, visitor: Visitor) -> None:
    person = visitor(served)
    person.watch.forgive("status of 401")
    page = person.sign_in()
    other = person.open("/tasks")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    expect(other.locator("#connection")).to_have_attribute("data-state", "signed-out")
    expect(other.locator("#toasts")).to_contain_text("signed out")


def test_revoking_the_token_ends_the_page_and_its_stream(alone: Served, visitor: Visitor) -> None:
    made = serve.create_token(str(alone.root), "pm", None, scope="admin")
    person = visitor(alone)
    person.watch.forgive("status of 401", "ERR_INCOMPLETE_CHUNKED_ENCODING")
    page = person.context.new_page()
    page.goto(f"{alone.origin}/board/login")
    page.get_by_label("Token").fill(made.token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector(LIVE)
    task = scenes.waiting(alone, "Seen while the token is good")
    person.open(f"/tasks/{task}", page)
    page.locator("#comment-text").fill("half a sentence")
    serve.revoke_token(str(alone.root), made.id)
    expect(page.locator("#connection")).to_have_attribute("data-state", "signed-out")
    expect(page.locator("#toasts")).to_contain_text("Sign in")
    expect(page.locator("#comment-text")).to_have_value("half a sentence")
    assert page.request.get(f"{alone.origin}/board/live").status == 401


def _csrf(page: Page) -> str:
    return str(page.locator("body").get_attribute("data-csrf"))


@pytest.mark.parametrize("given", [{}, {"csrf": ""}, {"csrf": "0" * 40}])
def test_a_write_without_the_token_of_its_page_is_refused(
    person: Person, page: Page, served: Served, given: dict[str, str]
) -> None:
    person.watch.forgive("status of 403")
    task = scenes.waiting(served)
    person.open("/", page)
    where = f"{served.origin}/board/tasks/{task}/do/comment"
    status, text = page.evaluate(_POST, [where, {"text": "forged", **given}, {}])
    assert status == 403, text
    assert "reload the page" in text
    status, text = page.evaluate(_POST, [where, {"text": "real", "csrf": _csrf(page)}, {"HX-Request": "true"}])
    assert status == 200, text
    with served.fabric() as fabric:
        assert "forged" not in fabric.get(task).body
        assert "real" in fabric.get(task).body


@contextmanager
def _elsewhere(page_text: str) -> Iterator[str]:
    """Somebody else's page, on another port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page_text.encode())

        def log_message(self, *_words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def test_a_form_from_another_port_is_refused_even_with_the_right_token(
    person: Person, page: Page, served: Served
) -> None:
    task = scenes.waiting(served)
    person.open("/", page)
    form = f"""<!doctype html><html lang=en><title>Elsewhere</title><main><h1>Elsewhere</h1>
      <form method=post action="{served.origin}/board/tasks/{task}/do/comment">
      <input type=hidden name=text value=forged><input type=hidden name=csrf value="{_csrf(page)}">
      <button>Win</button></form></main></html>"""
    with _elsewhere(form) as address:
        tab = person.context.new_page()
        tab.goto(address)
        with tab.expect_response(lambda answer: answer.url.endswith("/do/comment")) as told:
            tab.get_by_role("button", name="Win").click()
        assert told.value.status in (401, 403)
        tab.close()
        person.watch.forgive("status of 40[13]")
        person.watch.requests.remove(address)
        person.watch.requests[:] = [url for url in person.watch.requests if not url.startswith(address)]
    with served.fabric() as fabric:
        assert "forged" not in fabric.get(task).body


def test_a_link_from_another_page_signs_nobody_in_before_they_say_so(served: Served, visitor: Visitor) -> None:
    person = visitor(served)
    with _elsewhere(
        f'<!doctype html><html lang=en><title>E</title><main><a href="{served.link()}">go</a></main>'
    ) as to:
        page = person.context.new_page()
        page.goto(to)
        page.get_by_role("link", name="go").click()
        expect(page.get_by_role("button", name="Open the board")).to_be_visible()
        assert person.context.cookies() == []
        page.get_by_role("button", name="Open the board").click()
        page.wait_for_selector(LIVE)
        person.watch.requests[:] = [url for url in person.watch.requests if not url.startswith(to)]
