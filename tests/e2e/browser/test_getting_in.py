"""Links, tokens and sessions: who gets in, how often, and for how long; and what a write must prove."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from playwright.sync_api import Page, expect

from aof.service import serve
from aof.service.clock import SystemClock
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
    expect(page.locator(".problem")).to_contain_text("aof admin token create")


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


def _half(page: Page) -> str:
    """The page's half of the session, as its own scripts read it."""
    return str(page.evaluate("localStorage.getItem(document.documentElement.dataset.session)"))


@pytest.mark.parametrize("given", [{}, {"AOF-Page": ""}, {"AOF-Page": "0" * 22}])
def test_a_write_without_the_pages_half_of_the_session_is_refused(
    person: Person, page: Page, served: Served, given: dict[str, str]
) -> None:
    person.watch.forgive("status of 401")
    task = scenes.waiting(served)
    person.open("/", page)
    where = f"{served.origin}/board/tasks/{task}/do/comment"
    status, text = page.evaluate(_POST, [where, {"text": "forged"}, given])
    assert (status, text) == (401, "signed out")
    real = {"HX-Request": "true", "AOF-Page": _half(page)}
    status, text = page.evaluate(_POST, [where, {"text": "real"}, real])
    assert status == 200, text
    with served.fabric() as fabric:
        assert "forged" not in fabric.get(task).body
        assert "real" in fabric.get(task).body


@contextmanager
def _elsewhere(page_text: str, seen: list[dict[str, str]] | None = None) -> Iterator[str]:
    """Somebody else's page, on another port of this machine; `seen` gets the headers that the browser sends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if seen is not None:
                seen.append({"path": self.path} | {name.lower(): value for name, value in self.headers.items()})
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


def test_a_form_from_another_port_is_refused_even_with_the_pages_half_in_it(
    person: Person, page: Page, served: Served
) -> None:
    task = scenes.waiting(served)
    person.open("/", page)
    form = f"""<!doctype html><html lang=en><title>Elsewhere</title><main><h1>Elsewhere</h1>
      <form method=post action="{served.origin}/board/tasks/{task}/do/comment">
      <input type=hidden name=text value=forged><input type=hidden name=AOF-Page value="{_half(page)}">
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


_ATTACK = """async ([origin, task, half]) => {
  const told = [];
  const tries = [
    [`/board/tasks/${task}`, {}],
    [`/board/tasks/${task}/do/approve`, {method: "POST", mode: "no-cors", body: new URLSearchParams({rev: "1"})}],
    [`/board/tasks/${task}/do/approve`, {method: "POST", headers: {"AOF-Page": half, "HX-Request": "true"}}],
    [`/board/live?after=0`, {headers: {"AOF-Page": half}}],
  ];
  for (const [path, more] of tries) {
    try {
      const answer = await fetch(origin + path, {credentials: "include", ...more});
      told.push(answer.type === "opaque" ? "opaque" : await answer.text());
    } catch { told.push("refused"); }
  }
  return [told, {...localStorage}, document.cookie];
}"""


def test_a_server_on_another_port_gets_the_cookie_and_can_do_nothing_with_it(
    person: Person, page: Page, served: Served
) -> None:
    """A dev server that an agent has started: the person opens it in the browser that is signed in at the board."""
    task = scenes.gate(served)
    with served.fabric() as fabric:
        before = fabric.get(task)
    assert before.status == "review"
    person.open("/", page)
    half, seen = _half(page), list[dict[str, str]]()
    with _elsewhere("<!doctype html><html lang=en><title>Dev</title><main><h1>Dev</h1></main>", seen) as address:
        tab = person.context.new_page()
        tab.goto(f"{address}board/tasks")
        told, kept, readable = tab.evaluate(_ATTACK, [served.origin, task, half])
        assert told == ["refused"] * 4
        assert (kept, readable) == ({}, "")
        tab.close()
        person.watch.forgive("CORS policy", "ERR_FAILED", "ERR_BLOCKED_BY_RESPONSE", "status of 40[135]")
        person.watch.requests[:] = [url for url in person.watch.requests if not url.startswith(address)]
    (cookie,) = (one["cookie"] for one in seen if one["path"] == "/board/tasks")
    assert cookie.startswith("aof_"), "ports are one host to a cookie: this is what makes the half necessary"
    assert half not in str(seen)
    browser = {"Cookie": cookie, "Origin": served.origin, "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
    shown = httpx.get(f"{served.origin}/board/tasks/{task}", headers=browser)
    assert (shown.status_code, before.title in shown.text) == (200, False)
    for guess in ({}, {"AOF-Page": ""}, {"AOF-Page": "0" * len(half)}):
        headers = browser | guess | {"Sec-Fetch-Mode": "cors", "HX-Request": "true"}
        for path in (f"tasks/{task}", "tasks", "live", "verified", f"tasks/{task}/moves"):
            assert httpx.get(f"{served.origin}/board/{path}", headers=headers).text == "signed out"
        where = f"{served.origin}/board/tasks/{task}/do/approve"
        approved = httpx.post(where, headers=headers, data={"rev": str(before.rev)})
        assert (approved.status_code, approved.text) == (401, "signed out")
    with served.fabric() as fabric:
        assert fabric.get(task) == before


def test_a_new_tab_a_reload_and_the_way_back_need_no_new_link(person: Person, page: Page, served: Served) -> None:
    task = scenes.waiting(served, "Seen again")
    person.open("/tasks", page)
    page.reload()
    page.wait_for_selector(LIVE)
    link = page.get_by_role("link", name="Seen again").first
    with person.context.expect_page() as opened:
        link.click(modifiers=["ControlOrMeta"])
    opened.value.wait_for_selector(LIVE)
    expect(opened.value.get_by_role("heading", level=1)).to_contain_text("Seen again")
    link.click()
    page.wait_for_url(f"{served.origin}/board/tasks/{task}")
    page.wait_for_selector(LIVE)
    page.go_back()
    page.wait_for_url(f"{served.origin}/board/tasks")
    page.wait_for_selector(LIVE)
    expect(page).to_have_title(re.compile("Lighthouse"))
    expect(link).to_be_visible()


def test_a_browser_with_the_cookie_alone_is_asked_to_sign_in_and_comes_back(served: Served, visitor: Visitor) -> None:
    person, bare = visitor(served), visitor(served)
    person.sign_in()
    bare.watch.forgive("status of 401")
    bare.context.add_cookies(person.context.cookies())  # type: ignore[arg-type]
    page = bare.context.new_page()
    page.goto(f"{served.origin}/board/activity")
    page.wait_for_url(f"{served.origin}/board/login?next=%2Fboard%2Factivity")
    page.get_by_label("Token").fill(serve.create_token(str(served.root), "pm", None, scope="lead").token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{served.origin}/board/activity")
    assert page.wait_for_selector(LIVE)
