"""What the views show of tasks, and that text by others stays text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.surfaces.board.app import VIEWS
from tests.board.conftest import Browser
from tests.support.repository import ROOT

SCRIPT = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"
PATHS = [view.path for view in VIEWS if view.key]


def _hostile(fabric: Fabric) -> str:
    """A task with a script in every field that takes text."""
    task_id = fabric.create(SCRIPT, brief=SCRIPT, tags=["<b>"], acceptance=[SCRIPT]).task_id
    run = fabric.claim(task_id, agent="ada").run_id
    fabric.progress(task_id, run=run, text=SCRIPT, note=SCRIPT, phase=SCRIPT)
    fabric.ask(task_id, run=run, text=SCRIPT, choices=[SCRIPT])
    fabric.comment(task_id, SCRIPT)
    fabric.block(task_id, reason=SCRIPT)
    return task_id


@pytest.mark.parametrize(
    "path",
    [
        *PATHS,
        "/tasks/{id}",
        "/tasks/{id}/at/{last}",
        "/tasks/{id}/do/edit",
        "/tasks/{id}/do/answer",
        "/tasks/{id}/move",
    ],
)
def test_a_script_in_any_field_is_text_on_every_page(browser: Browser, fabric: Fabric, path: str) -> None:
    task_id = _hostile(fabric)
    answer = browser.get(path.format(id=task_id, last=fabric.store.head()))
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "<img src=x" not in answer.text
    assert not re.search(r"<[^>]*\sonerror=", re.sub(r'"[^"]*"', '""', answer.text))


@pytest.mark.parametrize(
    "query", ["q={x}", "agent={x}", "tag={x}", "open={x}", "n-ready={x}", "kind={x}", "task={x}", "type={x}"]
)
def test_a_script_in_an_address_is_text_on_every_page(browser: Browser, query: str) -> None:
    for path in PATHS:
        answer = browser.get(f"{path}?{query.format(x='<script>alert(1)</script>')}")
        assert answer.status_code in (200, 400, 404)
        assert "<script>alert" not in answer.text


def test_the_board_shows_fifty_tasks_per_column_and_more_on_demand(browser: Browser, fabric: Fabric) -> None:
    for number in range(60):
        fabric.create(f"Task {number}")
    text = browser.get("/tasks").text
    assert text.count('class="card"') == 50
    assert "10 more" in text
    assert browser.get("/tasks?n-ready=100").text.count('class="card"') == 60


def test_done_tasks_are_collapsed_until_they_are_asked_for(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("Finished").task_id
    fabric.cancel(task_id)
    assert f"card-{task_id}" not in browser.get("/tasks").text
    assert f"card-{task_id}" in browser.get("/tasks?open=cancelled").text


def test_filters_are_in_the_address(browser: Browser, fabric: Fabric) -> None:
    one, other = fabric.create("Paint it", tags=["ui"]).task_id, fabric.create("Fix it", agent="ada").task_id
    for query, found, left_out in (("tag=ui", one, other), ("agent=ada", other, one), ("q=paint", one, other)):
        text = browser.get(f"/tasks?{query}").text
        assert f"card-{found}" in text
        assert f"card-{left_out}" not in text


def test_what_needs_a_person_comes_first(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("Look at me").task_id
    fabric.complete(task_id, run=fabric.claim(task_id, agent="ada").run_id, summary="done")
    text = browser.get("/").text
    assert "Needs you" in text
    assert "Look at me" in text
    assert f"/board/tasks/{task_id}/do/approve" in text


def test_a_task_shows_what_there_is_of_it(browser: Browser, fabric: Fabric) -> None:
    before, task_id = fabric.create("First").task_id, fabric.create("Second", brief="**Bold** plan").task_id
    fabric.dep_add(task_id, before)
    fabric.comment(task_id, "Looks _fine_")
    text = browser.get(f"/tasks/{task_id}").text
    for part in ("<strong>Bold</strong> plan", "Looks <em>fine</em>", "First", "task.created", "not run yet"):
        assert part in text


def test_a_task_is_shown_as_it_was_with_what_an_event_changed(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("Before").task_id
    fabric.edit(task_id, title="After", description="new words")
    last = fabric.store.head()
    text = browser.get(f"/tasks/{task_id}/at/{last}").text
    assert "<del>Before</del>" in text
    assert "<ins>After</ins>" in text
    assert "+ new words" in text
    created = next(event.seq for event in fabric.events(task_id=task_id))
    assert "Before" in browser.get(f"/tasks/{task_id}/at/{created}").text


WORKFLOW = """\
name: careful
hops:
  - {id: build, role: developer}
  - {id: check, role: reviewer, dependsOn: [build], canReject: true}
"""


def test_the_page_of_a_gated_task_shows_its_hops_and_why_it_was_sent_back(
    browser: Browser, fabric: Fabric, root: str
) -> None:
    Path(root, "workflows").mkdir(exist_ok=True)
    Path(root, "workflows/careful.yaml").write_text(WORKFLOW, "utf-8")
    task_id = fabric.create("Gated", workflow="careful").task_id
    fabric.claim(task_id, agent="ada").complete("built")
    fabric.claim(task_id, agent="rita").complete(outcome="needs_review", blockers=["no docs"])
    text = browser.get(f"/tasks/{task_id}").text
    assert f'<a href="/board/workflow/{task_id}">careful</a>' in text
    assert "sent back by rita at check: no docs" in text
    assert re.search(r"ready</span> build .*rejected</span> check ", text)
    past = "".join(browser.get(f"/tasks/{task_id}/at/{event.seq}").text for event in fabric.events(task_id=task_id))
    assert "workflow hops check status</th><td><del>running</del></td><td><ins>rejected</ins>" in past


def test_the_past_is_told_in_words_and_without_what_stayed_the_same(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("Before", tags=["ui"]).task_id
    fabric.claim(task_id, agent="ada")
    claimed = "".join(browser.get(f"/tasks/{task_id}/at/{event.seq}").text for event in fabric.events(task_id=task_id))
    assert "<ins>in progress</ins>" in claimed
    assert "<ins>agent ada · run" in claimed
    assert "secretDigest" not in claimed
    fabric.edit(task_id, priority="high", routing={"tags": ["ui", "api"]})
    edited = browser.get(f"/tasks/{task_id}/at/{fabric.store.head()}").text
    assert "<del>normal</del>" in edited
    assert "routing tags</th><td></td><td><ins>api</ins></td>" in edited


def test_entries_of_the_work_log_say_how_long_ago_they_were_made(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("Noted").task_id
    fabric.update(task_id, note="2026-01-01T00:00:00.000Z was <b>cold</b>", actor="ada")
    text = browser.get(f"/tasks/{task_id}").text
    assert re.search(
        r"<li><time datetime=.*>0 s ago</time> ada: 2026-01-01T00:00:00.000Z was &lt;b&gt;cold&lt;/b&gt;</li>", text
    )


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/tasks/TASK-2020-01-01-001", 404),
        ("/tasks/%00", 404),
        ("/tasks/..%2f..%2faof.toml", 404),
        ("/tasks/x/at/1", 404),
        ("/tasks/{id}/at/99999999", 400),
        ("/tasks/{id}/at/x", 400),
        ("/tasks/{id}/do/doctor", 404),
        ("/tasks/{id}/do/nothing", 404),
        ("/bulk/archive", 404),
        ("/nowhere", 404),
        ("/static/../app.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/live?after=x", 400),
    ],
)
def test_what_is_not_there_is_said_on_a_page_that_leads_on(
    browser: Browser, fabric: Fabric, path: str, status: int
) -> None:
    task_id = fabric.create("One").task_id
    answer = browser.get(path.format(id=task_id))
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert 'href="/board/' in answer.text


def test_a_view_alone_is_a_part_of_its_page(browser: Browser, fabric: Fabric) -> None:
    fabric.create("One")
    part = browser.get("/tasks", **{"AOF-Part": "view"}).text.strip()
    assert part.startswith("<main")
    assert part.endswith("</main>")
    assert "<html" not in part


def test_runs_at_the_same_time_stand_in_lanes_of_their_own(browser: Browser, fabric: Fabric) -> None:
    first, second = fabric.create("One").task_id, fabric.create("Two").task_id
    runs = {task: fabric.claim(task, agent="ada").run_id for task in (first, second)}
    assert browser.get("/insights?by=agent").text.count('class="lane-name"') == 2
    for task, run in runs.items():
        fabric.complete(task, run=run, summary="done")
    third = fabric.create("Three").task_id
    fabric.claim(third, agent="ada")
    assert browser.get("/insights?by=agent").text.count('class="lane-name"') == 2


def test_the_navigation_marks_the_view_and_what_a_page_is_part_of(browser: Browser, fabric: Fabric) -> None:
    task_id = fabric.create("One").task_id
    assert 'graph" data-key="d" aria-current="page"' in browser.get("/graph").text
    assert 'graph" data-key="d" aria-current="true"' in browser.get(f"/graph/{task_id}").text
    assert 'tasks" data-key="b" aria-current="true"' in browser.get(f"/tasks/{task_id}").text


def test_every_view_is_in_the_guide_with_its_keys() -> None:
    guide = (ROOT / "docs/howto/watch-the-board.md").read_text("utf-8")
    for view in VIEWS:
        if view.key:
            assert re.search(rf"^\| {view.title} \|.*\| `g` `{view.key}` \|$", guide, re.MULTILINE), view.name
