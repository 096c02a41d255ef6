"""The forms of the page: each is an operation, carries the revision it was made for, and keeps what was typed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape

import pytest

from aof.api.fabric import Fabric
from tests.board.conftest import Browser


def _review(fabric: Fabric) -> str:
    task_id = fabric.create("Paint it").task_id
    fabric.complete(task_id, run=fabric.claim(task_id, agent="ada").run_id, summary="done")
    return task_id


def _rev(fabric: Fabric, task_id: str) -> int:
    return int(fabric.show(task_id)["rev"])


def test_work_is_approved(browser: Browser, fabric: Fabric) -> None:
    task_id = _review(fabric)
    answer = browser.send(f"/tasks/{task_id}/do/approve", rev=_rev(fabric, task_id), reason="nice")
    assert answer.status_code == 200
    assert json.loads(answer.headers["hx-trigger"])["aof:done"]["text"] == f"{task_id}: approved"
    assert fabric.get(task_id).status == "done"


def test_work_is_rejected_with_blockers_one_per_line(browser: Browser, fabric: Fabric) -> None:
    task_id = _review(fabric)
    browser.send(f"/tasks/{task_id}/do/reject", rev=_rev(fabric, task_id), blockers="no tests\r\n\r\nno docs")
    assert fabric.get(task_id).status == "ready"
    assert "no docs" in str([event.payload for event in fabric.events(task_id=task_id)])


def test_a_question_is_answered(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("Bucket").task_id
    fabric.ask(task_id, run=fabric.claim(task_id, agent="ada").run_id, text="Which region?", choices=["eu", "us"])
    form = browser.get(f"/tasks/{task_id}/do/answer", **{"HX-Target": "dialog#dialog"}).text
    assert "Which region?" in form
    assert ">eu</button>" in form
    assert browser.send(f"/tasks/{task_id}/do/answer", question="Q1", text="eu").status_code == 200
    assert fabric.show(task_id)["questions"][0]["answer"]["text"] == "eu"


@pytest.mark.parametrize(
    ("begin", "action", "fields", "ends"),
    [
        ("backlog", "promote", {}, "ready"),
        ("ready", "shelve", {}, "backlog"),
        ("ready", "pause", {"reason": "lunch"}, "blocked"),
        ("ready", "block", {"reason": "no key"}, "blocked"),
        ("ready", "cancel", {"reason": "not wanted"}, "cancelled"),
        ("cancelled", "retry", {"reason": "wanted after all"}, "ready"),
        ("paused", "resume", {}, "ready"),
        ("blocked", "unblock", {}, "ready"),
        ("running", "release", {"reason": "stuck"}, "ready"),
    ],
)
def test_a_task_is_steered(  # noqa: PLR0917 - one row per action
    browser: Browser, fabric: Fabric, begin: str, action: str, fields: dict[str, str], ends: str
) -> None:
    task_id = fabric.create("One", backlog=begin == "backlog").task_id
    prepare: dict[str, Callable[[], object]] = {
        "cancelled": lambda: fabric.cancel(task_id),
        "paused": lambda: fabric.pause(task_id),
        "blocked": lambda: fabric.block(task_id, reason="x"),
        "running": lambda: fabric.claim(task_id, agent="ada"),
    }
    if begin in prepare:
        prepare[begin]()
    assert f'data-action="{action}"' in browser.get(f"/tasks/{task_id}").text
    answer = browser.send(f"/tasks/{task_id}/do/{action}", rev=_rev(fabric, task_id), **fields)
    assert answer.status_code == 200, answer.text
    assert fabric.get(task_id).status == ends


def test_a_task_is_created(browser: Browser, fabric: Fabric) -> None:
    parent, first = fabric.create("Parent").task_id, fabric.create("First").task_id
    answer = browser.send(
        "/create", title="New", brief="Do it", priority="high", agent="ada", tags="ui, api", due="+3d",
        depends_on=first, parent_id=parent, backlog="1",
    )  # fmt: skip
    task = fabric.show(json.loads(answer.headers["hx-trigger"])["aof:done"]["task"])
    assert (task["title"], task["status"], task["priority"]) == ("New", "backlog", "high")
    assert list(task["routing"]["tags"]) == ["ui", "api"]
    assert (task["parentId"], *task["dependsOn"]) == (parent, first)


def test_the_same_form_sent_twice_is_done_once(browser: Browser, fabric: Fabric) -> None:
    for _ in range(2):
        assert browser.send("/create", title="Once", key="abc").status_code == 200
    assert fabric.list()["total"] == 1


def test_a_comment_is_said_whatever_happened_meanwhile(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One").task_id
    fabric.edit(task_id, title="Two")
    assert browser.send(f"/tasks/{task_id}/do/comment", text="hello", rev=1).status_code == 200
    assert [one["text"] for one in fabric.show(task_id)["comments"]] == ["hello"]


def test_an_edit_changes_what_was_touched_and_nothing_else(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One", brief="text", priority="high", agent="ada", tags=["a"], owner="pm").task_id
    form = _fields(browser.get(f"/tasks/{task_id}/do/edit", **{"HX-Target": "dialog#dialog"}).text)
    answer = browser.send(f"/tasks/{task_id}/do/edit", **form | {"title": "Two", "owner": "", "tags": "a b"})
    assert answer.status_code == 200, answer.text
    task = fabric.show(task_id)
    assert (task["title"], task["priority"], task.get("owner")) == ("Two", "high", None)
    assert (task["routing"]["agent"], *task["routing"]["tags"]) == ("ada", "a", "b")
    assert task["body"].strip() == "text"


def test_a_conflict_keeps_what_was_typed_beside_the_new_version(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One", brief="old words", priority="low").task_id
    form = _fields(browser.get(f"/tasks/{task_id}/do/edit", **{"HX-Target": "dialog#dialog"}).text)
    fabric.edit(task_id, description="their words", priority="critical")
    answer = browser.send(f"/tasks/{task_id}/do/edit", **form | {"description": "my words"})
    assert answer.status_code == 409
    assert "my words" in answer.text
    assert "their words" in answer.text
    assert fabric.show(task_id)["body"].strip() == "their words"
    again = browser.send(f"/tasks/{task_id}/do/edit", **_fields(answer.text))
    assert again.status_code == 200, again.text
    task = fabric.show(task_id)
    assert (task["body"].strip(), task["priority"]) == ("my words", "critical")


def test_a_stale_revision_changes_nothing(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One").task_id
    seen = _rev(fabric, task_id)
    fabric.edit(task_id, title="Two")
    answer = browser.send(f"/tasks/{task_id}/do/cancel", rev=seen, reason="not wanted")
    assert answer.status_code == 409
    assert "not wanted" in answer.text
    assert fabric.get(task_id).status == "ready"


def test_a_refusal_keeps_what_was_typed_and_says_what_is_wrong(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One").task_id
    answer = browser.send(f"/tasks/{task_id}/do/link", kind="blocked_by", target="TASK-2020-01-01-999")
    assert answer.status_code >= 400
    assert 'class="problem"' in answer.text
    assert "TASK-2020-01-01-999" in answer.text


def test_the_server_says_where_a_task_may_be_dragged_and_never_that_it_is_approved(
    browser: Browser, fabric: Fabric
) -> None:
    review = browser.get(f"/tasks/{_review(fabric)}/moves").json()
    assert "done" not in review["moves"]
    ready = fabric.create("One").task_id
    told = browser.get(f"/tasks/{ready}/moves").json()
    assert told["rev"] == _rev(fabric, ready)
    assert told["moves"]["backlog"] == {"action": "shelve", "direct": True, "label": "To the backlog"}
    assert told["moves"]["cancelled"]["direct"] is False


def test_many_tasks_are_cancelled_after_a_look_at_what_would_become_of_them(browser: Browser, fabric: Fabric) -> None:
    ids = [fabric.create(f"Task {number}").task_id for number in range(3)]
    asked = "&".join(f"id={one}" for one in ids)
    text = browser.get(f"/bulk/cancel?{asked}", **{"HX-Target": "dialog#dialog"}).text
    assert fabric.get(ids[0]).status == "ready"
    fabric.edit(ids[2], title="Changed since")
    revs = re.findall(r'name="rev" value="([^"]+)"', text)
    answer = browser.send("/bulk/cancel", id=ids, rev=revs, reason="not wanted")
    assert [fabric.get(one).status for one in ids] == ["cancelled", "cancelled", "ready"]
    assert answer.status_code == 422
    assert "1 refused" in answer.text


def test_a_body_of_five_megabytes_is_refused_on_a_page(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One").task_id
    answer = browser.send(f"/tasks/{task_id}/do/comment", text="x" * 5_000_000)
    assert answer.status_code == 413
    assert 'class="problem"' in answer.text
    assert "comments" not in fabric.show(task_id)


def test_only_forms_are_read(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One").task_id
    answer = browser.client.post(
        f"/board/tasks/{task_id}/do/cancel",
        json={},
        headers={"Origin": "http://127.0.0.1:8420", "Sec-Fetch-Site": "same-origin"},
    )
    assert answer.status_code == 400


def _fields(page: str) -> dict[str, str]:
    """What a browser would send of the form in a page."""
    found = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', page))
    found |= dict(re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL))
    for name, options in re.findall(r'<select[^>]*name="([^"]+)">(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r"<option selected>([^<]*)", options) or re.search(r"<option>([^<]*)", options)
        found[name] = chosen[1] if chosen else ""
    return {name: unescape(value) for name, value in found.items()}


@pytest.mark.parametrize("action", ["approve", "reject"])
def test_whoever_judges_work_sees_what_was_reported(browser: Browser, fabric: Fabric, action: str) -> None:
    task_id = fabric.create("One").task_id
    run = fabric.claim(task_id, agent="ada").run_id
    fabric.complete(task_id, run=run, summary="The lamp **burns**", deliverables=["lamp.md"])
    for path in (f"/tasks/{task_id}/do/{action}", f"/tasks/{task_id}"):
        text = browser.get(path).text
        assert "The lamp <strong>burns</strong>" in text
    assert "lamp.md" in browser.get(f"/tasks/{task_id}").text


@pytest.mark.parametrize("rev", [{}, {"rev": ""}, {"rev": "abc"}, {"rev": "-1"}, {"rev": "9" * 30}])
def test_a_form_that_does_not_say_for_which_version_it_is_changes_nothing(
    browser: Browser, fabric: Fabric, rev: dict[str, str]
) -> None:
    task_id = _review(fabric)
    answer = browser.send(f"/tasks/{task_id}/do/approve", **rev)
    assert answer.status_code == 400
    assert "for which version" in answer.text
    assert browser.send("/bulk/cancel", id=task_id, **rev).status_code == 400
    assert fabric.get(task_id).status == "review"


def test_what_cannot_be_done_now_is_said_before_a_form_is_filled_in(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One").task_id
    answer = browser.get(f"/tasks/{task_id}/do/approve", **{"HX-Target": "dialog#dialog"})
    assert answer.status_code == 422
    assert f"Approve is not possible while {task_id} is ready" in unescape(answer.text)
    assert "<textarea" not in answer.text


def test_ones_own_work_is_not_offered_for_approval_and_the_refusal_is_in_sentences(
    browser: Browser, fabric: Fabric
) -> None:
    task_id = fabric.create("One").task_id
    run = fabric.claim(task_id, agent="pm").run_id
    fabric.complete(task_id, run=run, agent="pm", outcome="needs_review")
    page = browser.get("/").text
    assert f'aria-label="Approve {task_id}"' not in page
    assert f'aria-label="Request changes to {task_id}"' in page
    assert "by somebody other than pm" in page
    refused = browser.send(f"/tasks/{task_id}/do/approve", rev=_rev(fabric, task_id)).text
    assert "cannot approve it.</strong>" in refused
    assert "aof init --solo" in refused
