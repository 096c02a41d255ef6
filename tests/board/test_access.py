"""Who is let into the page, and which writes are believed to come from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from aof.api.fabric import Fabric
from aof.service import serve
from tests.board.conftest import ORIGIN, SAME, Browser

Visitor = Callable[[], Browser]


def test_a_browser_is_led_from_the_front_door_to_the_page(visitor: Visitor) -> None:
    answer = visitor().client.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/board/")


def test_a_program_at_the_front_door_is_told_where_the_interface_is(visitor: Visitor) -> None:
    answer = visitor().client.get("/", headers={"Accept": "application/json"})
    assert answer.status_code == 404
    assert "/openapi.json" in answer.json()["error"]["hint"]


@pytest.mark.parametrize("path", ["/", "/tasks", "/agents", "/activity", "/tasks/001", "/create", "/tasks/001/do/edit"])
def test_nobody_sees_anything_without_being_in(visitor: Visitor, fabric: Fabric, path: str) -> None:
    fabric.create("A secret plan")
    answer = visitor().get(path)
    assert answer.status_code == 401
    assert "Sign in" in answer.text
    assert "secret plan" not in answer.text


@pytest.mark.parametrize("path", ["/live", "/verified", "/tasks/001/moves"])
def test_what_a_page_asks_for_by_itself_is_told_that_nobody_is_in(visitor: Visitor, path: str) -> None:
    answer = visitor().get(path, **{"Sec-Fetch-Mode": "cors"})
    assert (answer.status_code, answer.text) == (401, "signed out")


def test_a_token_opens_the_page_for_its_owner(visitor: Visitor, root: str) -> None:
    browser = visitor()
    answer = browser.login(serve.create_token(root, "ada", None, scope="read").token)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/board" in cookie
    assert cookie.startswith(f"aof_{serve.instance_of(root)}=")
    assert "ada" in browser.get("/").text


def test_over_tls_the_cookie_never_leaves_it(visitor: Visitor, root: str) -> None:
    browser = visitor()
    browser.client.base_url = browser.client.base_url.copy_with(scheme="https")
    token = serve.create_token(root, "ada", None, scope="read").token
    answer = browser.login(token, Origin=ORIGIN.replace("http:", "https:"))
    assert "Secure" in answer.headers["set-cookie"]


def test_a_wrong_token_opens_nothing(visitor: Visitor) -> None:
    answer = visitor().login("aof_0_wrong")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "this token is not valid" in answer.text


def test_a_link_of_the_command_line_opens_the_page_once(visitor: Visitor, root: str) -> None:
    link = serve.make_link(root, "pm", "admin", ORIGIN)
    first = visitor()
    assert first.kept(first.client.get(link)).status_code == 200
    assert first.get("/").status_code == 200
    second = visitor()
    answer = second.client.get(link)
    assert answer.status_code == 401
    assert "aof board --web" in answer.text
    assert second.get("/").status_code == 401


def test_a_link_that_another_site_brings_asks_before_it_signs_anybody_in(visitor: Visitor, root: str) -> None:
    browser, link = visitor(), serve.make_link(root, "mallory", "read", ORIGIN)
    answer = browser.client.get(link, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert browser.get("/").status_code == 401
    key = link.partition("key=")[2]
    assert browser.kept(browser.client.post("/board/enter", data={"key": key}, headers=SAME)).status_code == 200
    assert browser.get("/").status_code == 200


def test_a_revoked_token_ends_its_pages(visitor: Visitor, root: str) -> None:
    token, browser = serve.create_token(root, "ada", None, scope="admin"), visitor()
    browser.login(token.token)
    assert browser.get("/").status_code == 200
    serve.revoke_token(root, token.id)
    assert browser.get("/").status_code == 401


def test_a_session_outlives_a_restart_of_the_server(root: str, browser: Browser) -> None:
    with TestClient(serve.make_http(root), base_url=ORIGIN, cookies=browser.client.cookies) as later:
        later.headers["AOF-Page"] = browser.client.headers["AOF-Page"]
        assert "Needs you" in later.get("/board/").text


def test_who_signs_out_is_out(browser: Browser) -> None:
    kept = dict(browser.client.cookies)
    assert browser.send("/logout").status_code == 200
    browser.client.cookies.update(kept)
    assert browser.get("/").status_code == 401


def test_a_cookie_opens_only_the_page(browser: Browser) -> None:
    assert browser.client.get("/api/v1/status").status_code == 401
    cookie = next(iter(dict(browser.client.cookies).values())) + str(browser.client.headers["AOF-Page"])
    assert browser.client.get("/api/v1/status", headers={"Authorization": f"Bearer {cookie}"}).status_code == 401


def test_a_token_for_calls_is_no_cookie(visitor: Visitor, root: str) -> None:
    browser = visitor()
    token = serve.create_token(root, "ada", None, scope="admin").token
    for cookie, half in ((token, ""), (token[:-22], token[-22:])):
        browser.client.cookies.set(f"aof_{serve.instance_of(root)}", cookie)
        assert browser.get("/", **{"AOF-Page": half}).status_code == 401
        assert browser.get("/", **{"AOF-Page": half, "Authorization": f"Bearer {token}"}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8420"},
        {"Origin": "https://127.0.0.1:8420"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": ""},
    ],
)
def test_a_form_of_any_other_page_is_refused(browser: Browser, fabric: Fabric, headers: dict[str, str]) -> None:
    task_id = fabric.create("Paint it").task_id
    answer = browser.send(f"/tasks/{task_id}/do/cancel", headers=headers)
    assert answer.status_code == 403
    assert fabric.get(task_id).status == "ready"


def test_a_form_from_nowhere_is_refused(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("Paint it").task_id
    answer = browser.client.post(f"/board/tasks/{task_id}/do/cancel", data={"rev": 1})
    assert answer.status_code == 403
    assert fabric.get(task_id).status == "ready"


@pytest.fixture
def stolen(browser: Browser, visitor: Visitor) -> Browser:
    """Somebody who was sent the cookie of a person, as whatever listens on another port of the same host is."""
    thief = visitor()
    thief.client.cookies.update(browser.client.cookies)
    return thief


_PAGES = ["/", "/tasks", "/tasks/001", "/create", "/tasks/001/do/cancel", "/tasks/001/move", "/activity", "/insights"]


@pytest.mark.parametrize("path", _PAGES)
def test_a_stolen_cookie_alone_shows_an_empty_page(
    stolen: Browser, browser: Browser, fabric: Fabric, path: str
) -> None:
    fabric.create("A secret plan", brief="hush")
    for more in ({}, {"Sec-Fetch-Mode": "navigate"}):
        answer = stolen.get(path, Accept="text/html", **more)
        assert answer.status_code == 200
        assert answer.text == browser_shell(stolen)
        assert not [word for word in ("secret", "hush", "pm", "TASK-") if word in answer.text]
    assert "secret plan" in browser.get("/tasks").text


def browser_shell(browser: Browser) -> str:
    """What every page is without the other half of the session."""
    text: str = browser.get("/insights", Accept="text/html").text
    assert "data-session" in text
    return text


@pytest.mark.parametrize("half", [None, "", "0" * 22, "ä", "x" * 5000])
@pytest.mark.parametrize("path", ["/tasks", "/live", "/verified", "/tasks/001/moves", "/tasks/001/do/cancel"])
def test_a_stolen_cookie_alone_reads_nothing(stolen: Browser, fabric: Fabric, path: str, half: str | None) -> None:
    fabric.create("A secret plan")
    headers = [(b"Sec-Fetch-Mode", b"cors"), *([(b"AOF-Page", half.encode())] if half is not None else [])]
    answer = stolen.client.get(f"/board{path}", headers=headers)
    assert (answer.status_code, answer.text) == (401, "signed out")


@pytest.mark.parametrize("half", [None, "", "0" * 22])
@pytest.mark.parametrize("action", ["approve", "cancel", "comment"])
def test_a_stolen_cookie_alone_decides_nothing(stolen: Browser, fabric: Fabric, action: str, half: str | None) -> None:
    """Not even with everything that a browser would say of a form of the board itself."""
    task_id = fabric.create("Paint it").task_id
    run = fabric.claim(task_id, agent="ada").run_id
    fabric.complete(task_id, run=run, agent="ada")
    before = fabric.get(task_id)
    headers = {} if half is None else {"AOF-Page": half}
    answer = stolen.send(f"/tasks/{task_id}/do/{action}", headers=headers, rev=before.rev, text="forged")
    assert answer.status_code == 401
    assert fabric.get(task_id) == before


def test_the_halves_of_two_sessions_make_none(browser: Browser, visitor: Visitor, root: str) -> None:
    other = visitor()
    other.login(serve.create_token(root, "pm", None, scope="admin").token)
    assert browser.get("/tasks", **{"AOF-Page": other.client.headers["AOF-Page"]}).status_code == 401
    doubled = [("AOF-Page", browser.client.headers["AOF-Page"]), ("AOF-Page", other.client.headers["AOF-Page"])]
    del browser.client.headers["AOF-Page"]
    assert browser.client.get("/board/tasks", headers=doubled).status_code == 401


def test_neither_half_stands_for_the_other(browser: Browser) -> None:
    (cookie,) = dict(browser.client.cookies).values()
    assert len(cookie) > 22
    assert len(browser.client.headers["AOF-Page"]) >= 22
    assert browser.client.headers["AOF-Page"] not in cookie
    assert cookie not in browser.get("/").text
    assert browser.client.headers["AOF-Page"] not in browser.get("/").text


def test_rights_are_those_of_the_token(visitor: Visitor, root: str, fabric: Fabric) -> None:
    task_id, reader = fabric.create("Paint it").task_id, visitor()
    reader.login(serve.create_token(root, "ada", None, scope="read").token)
    assert 'data-action="cancel"' not in reader.get(f"/tasks/{task_id}").text
    answer = reader.send(f"/tasks/{task_id}/do/cancel", rev=1)
    assert answer.status_code == 403
    assert "scope" in answer.text
    assert fabric.get(task_id).status == "ready"


@pytest.mark.parametrize(
    "onward",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/boardroom", "x" * 3000],
)
def test_signing_in_leads_only_to_pages_of_ours(visitor: Visitor, root: str, onward: str) -> None:
    token = serve.create_token(root, "ada", None, scope="read").token
    answer = visitor().client.post("/board/login", data={"token": token, "next": onward}, headers=SAME)
    assert 'href="/board/"' in answer.text


def test_signing_in_leads_to_where_one_wanted_to_go(visitor: Visitor, root: str) -> None:
    token = serve.create_token(root, "ada", None, scope="read").token
    answer = visitor().client.post("/board/login", data={"token": token, "next": "/board/tasks?q=x"}, headers=SAME)
    assert 'href="/board/tasks?q=x"' in answer.text


def test_a_foreign_host_is_refused_on_a_page(browser: Browser) -> None:
    answer = browser.get("/", Host="evil.example")
    assert answer.status_code == 403
    assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/", "/tasks", "/login", "/nowhere", "/static/board.css", "/tasks/none"])
def test_every_answer_keeps_the_page_to_itself(browser: Browser, path: str) -> None:
    headers = browser.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
