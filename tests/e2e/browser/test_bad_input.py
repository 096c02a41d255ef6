"""What people and machines should not send: the page says what is wrong and how to go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import scenes
from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.person import Person
from tests.e2e.browser.served import Served, serving
from tests.e2e.browser.views import HOPS, addresses
from tests.support.service import workflow

SCRIPT = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
MARKUP = "</textarea></title></style>--><svg/onload=window.pwned=3>{{7*7}}{% raw %}${alert(1)}&lt;b&gt;"
RIGHT_TO_LEFT = "\u202egnp.exe\u202c \u2066\u05e9\u05dc\u05d5\u05dd\u2069 \u0645\u0631\u062d\u0628\u0627"
LONG = "W" * 400
PICTURE = "![x](http://203.0.113.1/x.png) <http://203.0.113.1/>"
LINKS = f"[go](javascript:window.pwned=4) {PICTURE}\n\n<script>window.pwned = 5</script>"
TITLES = (SCRIPT, MARKUP, RIGHT_TO_LEFT, LONG)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A directory where every text is meant to do harm; no chart, so that anybody may be an agent."""
    with serving(tmp_path_factory.mktemp("hostile"), agents={}) as one:
        workflow(one.root, HOPS)
        for title in TITLES:
            _task(one, title)
        yield one


def _task(served: Served, title: str) -> None:
    """Tasks with this text wherever a text may be: one in review, one that asks, one that died, one that is blocked."""
    text = f"{title}\n\n{LINKS}"
    agent = "ada+" + "x" * 120
    with served.fabric() as fabric:
        made = fabric.create(title[:200], brief=text, agent=agent, due="2026-01-01", owner="pm")
        run = fabric.claim(made.task_id, agent=agent).run_id
        fabric.progress(made.task_id, text=title[:200], percent=10, run=run, agent=agent)
        fabric.comment(made.task_id, text=text)
        fabric.complete(made.task_id, run=run, agent=agent, summary=text)
        asks = fabric.create(title[:200], agent=agent).task_id
        run = fabric.claim(asks, agent=agent).run_id
        fabric.ask(asks, text=title, choices=(title[:100], "no"), run=run, agent=agent)
        dead = fabric.create(title[:200], agent=agent, max_attempts=1).task_id
        fabric.fail(dead, message=title[:200], run=fabric.claim(dead, agent=agent).run_id, agent=agent)
        held = fabric.create(title[:200], depends_on=(made.task_id,), acceptance=[title[:200]]).task_id
        fabric.block(held, reason=title)
        fabric.mail_send(to=agent, type="request", priority="P1", subject=title[:100], body=text)
        fabric.worklog_decide(title[:100], owner="pm")
        fabric.handoff_new(
            type="delegation", timeout=3600, task_id=asks, from_agent=agent, to=["bob"], reason=title[:200]
        )
        fabric.create(title[:200], workflow=HOPS["name"])


@pytest.mark.parametrize("width", [1360, 390])
def test_hostile_texts_stay_texts_in_every_view(visitor: Visitor, hostile: Served, width: int) -> None:
    person = visitor(hostile, viewport={"width": width, "height": 800})
    person.enter()
    page = person.context.new_page()
    with hostile.fabric() as fabric:
        tasks = [task.id for task in fabric.tasks() if task.status in ("review", "in-progress")]
        gated = [task.id for task in fabric.tasks() if task.gated]
    assert len(gated) == len(TITLES)
    paths = [*addresses(hostile).values(), *(f"/tasks/{task}" for task in tasks), "/tasks?q=%3Cscript%3E"]
    paths += [f"/workflow/{task}" for task in gated]
    for path in paths:
        person.open(path, page)
        assert person.watch.said() == [], path
        assert page.evaluate("window.pwned") is None, path
        assert (
            page.locator("#view a[href^='javascript:'], #view img, #view script:not([type='application/json'])").count()
            == 0
        ), path
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, path


def test_hostile_texts_stay_texts_in_every_dialog(visitor: Visitor, hostile: Served) -> None:
    person = visitor(hostile)
    person.enter()
    page = person.context.new_page()
    with hostile.fabric() as fabric:
        tasks = [task.id for task in fabric.tasks() if task.title == SCRIPT]
    for task in tasks:
        person.open(f"/tasks/{task}", page)
        for action in page.locator(".actions [data-action]").evaluate_all("all => all.map(one => one.dataset.action)"):
            page.locator(f".actions [data-action={action}]").click()
            expect(page.locator("#dialog")).to_be_visible()
            assert page.evaluate("window.pwned") is None, action
            page.keyboard.press("Escape")
            expect(page.locator("#dialog")).to_be_hidden()


@pytest.mark.parametrize(
    "path",
    [
        "/tasks/TASK-2001-01-01-999",
        "/tasks/<script>",
        "/tasks/..%2f..%2faof.toml",
        "/tasks/TASK-2001-01-01-999/at/7",
        "/tasks/TASK-2001-01-01-999/do/approve",
        "/tasks/TASK-2001-01-01-999/move",
        "/tasks/001/do/explode",
        "/tasks/001/at/abc",
        "/tasks?q=" + "x" * 600,
        "/bulk/explode",
        "/nowhere",
        "/workflow?task=TASK-2001-01-01-999",
        "/graph?task=TASK-2001-01-01-999",
        "/insights?task=TASK-2001-01-01-999",
        "/insights?task=nothing",
        "/activity?kind=handoff&task=TASK-2001-01-01-999",
        "/activity?kind=worklog&task=TASK-2001-01-01-999",
        "/activity?task=TASK-2001-01-01-999",
        "/static/../app.py",
    ],
)
def test_an_address_that_leads_nowhere_says_so_and_how_to_go_on(
    person: Person, page: Page, served: Served, path: str
) -> None:
    person.watch.forgive("status of 4")
    if served.session is None or path.startswith("/tasks/001"):
        scenes.waiting(served)
    page.goto(f"{served.origin}/board{path}")
    expect(page.locator(".problem")).to_be_visible()
    expect(page.locator(".problem")).not_to_contain_text("Traceback")
    expect(page.get_by_role("link", name="The board")).to_be_visible()


def test_a_filter_that_names_no_task_can_be_taken_away(person: Person, page: Page, served: Served) -> None:
    person.watch.forgive("status of 404")
    person.open("/insights", page)
    page.get_by_label("Task", exact=True).fill("TASK-2001-01-01-999")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_contain_text("TASK-2001-01-01-999")
    page.get_by_role("link", name="Without filters").click()
    expect(page.get_by_label("Task", exact=True)).to_have_value("")


def test_numbers_out_of_bounds_in_an_address_are_taken_to_their_bounds(person: Person, page: Page) -> None:
    for path in (
        "/tasks?n-ready=99999999999999",
        "/tasks?n-ready=-3",
        "/activity?before=abc",
        "/?n=1e9",
        "/tasks?open=,,,x",
    ):
        person.open(path, page)
        expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_body_of_five_megabytes_is_refused_and_kept(person: Person, page: Page, served: Served) -> None:
    person.watch.forgive("status of 413", "ERR_CONNECTION_RESET", "ERR_CONNECTION_ABORTED", "ERR_EMPTY_RESPONSE")
    person.open("/tasks", page)
    page.get_by_role("link", name="New task").click()
    page.get_by_label("Title").fill("Too much to say")
    page.get_by_label("Description").evaluate("one => { one.value = 'x'.repeat(5_000_000); }")
    page.locator("#dialog button[type=submit]").click()
    expect(page.locator("#dialog .problem")).to_contain_text(re.compile("limit|could not be sent"))
    expect(page.get_by_label("Title")).to_have_value("Too much to say")
    assert page.get_by_label("Description").evaluate("one => one.value.length") == 5_000_000


def test_a_task_with_a_body_of_a_megabyte_opens(person: Person, page: Page, served: Served) -> None:
    with served.fabric() as fabric:
        made = fabric.create("A long story", brief="Once upon a time.\n\n" * 10_000).task_id
    person.open(f"/tasks/{made}", page)
    expect(page.locator(".prose").first).to_contain_text("Once upon a time")


def _chain(hops: int) -> dict[str, Any]:
    """A workflow of so many hops, one after the other."""
    names = [f"hop-{number:03}" for number in range(hops)]
    before = [[], *([name] for name in names)]
    listed = [{"id": name, "role": "developer", "dependsOn": after} for name, after in zip(names, before, strict=False)]
    return {"name": f"chain-{hops}", "hops": listed}


def test_a_workflow_of_three_hundred_hops_is_refused_with_the_bound_and_keeps_the_form(
    person: Person, page: Page, served: Served
) -> None:
    person.watch.forgive("status of 4")
    workflow(served.root, _chain(300))
    person.open("/tasks", page)
    page.get_by_role("link", name="New task").click()
    page.get_by_label("Title").fill("Endless")
    page.locator("#dialog summary").click()
    page.get_by_label("Workflow").fill("chain-300")
    page.locator("#dialog button[type=submit]").click()
    expect(page.locator("#dialog .problem")).to_contain_text("more than 20 hops")
    expect(page.get_by_label("Title")).to_have_value("Endless")


def test_the_longest_workflow_is_drawn_with_every_hop(person: Person, page: Page, served: Served) -> None:
    workflow(served.root, _chain(20))
    with served.fabric() as fabric:
        task = fabric.create("Long way", workflow="chain-20").task_id
    person.open(f"/workflow?task={task}", page)
    expect(page.locator("#drawing [data-node]")).to_have_count(20)
    page.get_by_text("As a table").click()
    expect(page.locator("#as-table tbody tr")).to_have_count(20)
