"""Lists of tasks on every store: every filter, order and page."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import NothingReady
from aof.store.lists import Query
from aof.store.port import Store
from aof.testing import FakeClock
from tests.contracts.drafts import commit, created, moved

EVERYTHING = Query(archived=True)


def found(store: Store, **query: Any) -> list[str]:
    """The last parts of the IDs that a query finds."""
    return [task.id.rpartition("-")[2] for task in store.find(Query(**query)).tasks]


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"status": ("ready",)}, ["001", "002", "003"]),
    ({"status": ("done", "blocked")}, ["006", "008"]),
    ({"status": ("review",)}, []),
    ({"agent": "ada"}, ["001"]),
    ({"agent": "bob"}, ["005", "008"]),
    ({"agent": "ada", "unrouted_too": True}, ["001", "002", "003", "004", "006"]),
    ({"agent": "nobody"}, []),
    ({"tag": "api"}, ["001", "005"]),
    ({"tag": "design"}, ["001"]),
    ({"tag": "API"}, []),
    ({"tag": "api v2"}, ["002"]),
    ({"tag": "v2"}, []),
    ({"tag": "%"}, []),
    ({"search": "API"}, ["001", "003"]),
    ({"search": "api_"}, ["001", "003"]),
    ({"search": "100%"}, ["002"]),
    ({"search": "0%"}, ["002"]),
    ({"search": "STRASSE"}, ["002"]),
    ({"search": "task-2026-03-02-004"}, ["004"]),
    ({"search": "-00"}, ["001", "002", "003", "004", "005", "006", "008"]),
    ({"search": "\udc80"}, []),
    ({"agent": "\ud800"}, []),
    ({"parent_id": "TASK-2026-03-02-001"}, ["002", "003"]),
    ({"parent_id": "TASK-2026-03-02-002"}, []),
    ({"archived": True, "status": ("done",)}, ["006", "007"]),
    ({"hidden": False}, ["001", "002", "003", "005", "008"]),
    ({"busy_resources": ("gpu",)}, ["001", "002", "003", "004", "006", "008"]),
    ({"busy_resources": ("lab", "vault")}, ["001", "002", "003", "004", "005", "006", "008"]),
    ({"order": "schedule"}, ["002", "003", "004", "005", "006", "008", "001"]),
    ({"order": "schedule", "limit": 2}, ["002", "003"]),
    ({"limit": 0}, []),
    ({"limit": 3, "offset": 2}, ["003", "004", "005"]),
    ({"offset": 5}, ["006", "008"]),
    ({"offset": 99}, []),
    ({"limit": 10**30, "offset": 6}, ["008"]),
    ({"runnable_at": "2026-03-02T09:00:01.000Z"}, ["001", "002"]),
    ({"runnable_at": "2026-03-02T09:00:01.000Z", "waiting": True}, ["003"]),
    ({"runnable_at": "2026-03-02T09:00:01.000Z", "agent": "bob", "unrouted_too": True}, ["002"]),
    ({"status": ("ready",), "tag": "api", "search": "plan", "agent": "ada", "limit": 5}, ["001"]),
    ({"priority": "critical"}, ["002"]),
    ({"priority": "normal", "unfinished": True}, ["004", "005", "008"]),
    ({"unfinished": True}, ["001", "002", "003", "004", "005", "008"]),
    ({"created": ("2026-03-02T09:00:01.000Z", None)}, ["003", "004", "005", "006", "008"]),
    ({"created": (None, "2026-03-02T09:00:01.000Z")}, ["001", "002"]),
    ({"updated": ("2026-03-02T09:00:01.000Z", "2026-03-02T09:00:01.001Z"), "limit": 1}, ["003"]),
    ({"updated": (None, "2026-03-02T09:00:00.000Z")}, []),
    ({"due": (None, "2026-03-09T00:00:00.000Z")}, ["001", "003"]),
    ({"due": ("2026-03-05T00:00:00.000Z", None)}, ["003"]),
    ({"order": "due"}, ["001", "003", "002", "004", "005", "006", "008"]),
    ({"order": "created", "reverse": True, "limit": 3}, ["008", "006", "005"]),
    ({"order": "title"}, ["008", "003", "006", "004", "001", "002", "005"]),
    ({"order": "status"}, ["004", "001", "002", "003", "005", "008", "006"]),
    ({"reverse": True, "limit": 2}, ["008", "006"]),
    ({"behind": (0, "TASK-2026-03-02-003"), "limit": 2}, ["004", "005"]),
    ({"behind": (0, "TASK-2026-03-02-003"), "reverse": True}, ["002", "001"]),
    ({"behind": ("blocked one", "TASK-2026-03-02-008"), "order": "title", "limit": 1}, ["003"]),
]


class TestFind:
    """Lists of tasks."""

    def test_without_filters_everything_but_the_archive_comes_in_the_order_of_ids(self, team: Fabric) -> None:
        page = team.store.find(Query())

        assert [task.id[-3:] for task in page.tasks] == ["001", "002", "003", "004", "005", "006", "008"]
        assert page.total == 7
        assert page.by_status == {"ready": 3, "backlog": 1, "in-progress": 1, "done": 1, "blocked": 1}

    def test_every_filter_keeps_what_it_names(self, team: Fabric) -> None:
        assert [found(team.store, **query) for query, _ in FILTERS] == [expected for _, expected in FILTERS]

    def test_the_counts_are_of_all_that_match_whatever_page_is_shown(self, team: Fabric) -> None:
        whole = team.store.find(Query(search="api"))
        for limit, offset in ((0, 0), (1, 0), (1, 1), (5, 7)):
            page = team.store.find(Query(search="api", limit=limit, offset=offset))
            assert (page.total, page.by_status) == (whole.total, whole.by_status) == (2, {"ready": 2})
            assert page.tasks == whole.tasks[offset : offset + limit]

    def test_a_page_that_is_not_counted_counts_itself(self, team: Fabric) -> None:
        counted = team.store.find(Query(limit=3, offset=2))
        page = team.store.find(Query(limit=3, offset=2, counted=False))

        assert page.tasks == counted.tasks
        assert (page.total, page.by_status) == (3, {"ready": 1, "backlog": 1, "in-progress": 1})

    def test_the_tasks_of_a_page_are_whole_but_for_their_bodies(self, team: Fabric) -> None:
        for task in team.store.find(EVERYTHING).tasks:
            assert task == msgspec.structs.replace(team.get(task.id), body="", layout=None)

    def test_ids_are_in_the_order_of_their_numbers_also_past_999(self, store: Store, clock: FakeClock) -> None:
        names = [f"TASK-2026-03-02-{number}" for number in (998, 999, 1000, 1001, 10000)] + ["TASK-2026-03-03-001"]
        commit(store, clock, *(created(name) for name in reversed(names)))

        assert [task.id for task in store.find(Query()).tasks] == names
        assert [task.id for task in store.find(Query(order="schedule")).tasks] == names

    def test_an_answer_has_everything_that_was_committed_before_the_question(self, fabric: Fabric) -> None:
        for number in range(1, 21):
            task_id = fabric.create(f"Number {number}").task_id
            assert [task.id for task in fabric.store.find(Query(search=f"number {number}", limit=1)).tasks] == [task_id]
            fabric.cancel(task_id)
            assert fabric.store.find(Query(status=("cancelled",))).total == number


ORDERS = ("id", "schedule", "created", "updated", "due", "title", "status")


class TestPages:
    """Lists that are read page by page."""

    def test_the_pages_of_a_list_are_the_whole_list(self, team: Fabric) -> None:
        for order, reverse, limit in itertools.product(ORDERS, (False, True), (1, 3)):
            query = Query(order=order, reverse=reverse, archived=True)
            whole = team.store.find(query)
            assert whole.end is None
            pages = [team.store.find(query.but(limit=limit))]
            while (end := pages[-1].end) is not None:
                pages.append(team.store.find(query.but(limit=limit, behind=end)))

            assert [task for page in pages for task in page.tasks] == list(whole.tasks), query
            assert {page.total for page in pages} == {whole.total}, query
            rows = team.store.rows(query.but(limit=limit))
            assert ([row.id for row in rows.rows], rows.end) == ([task.id for task in pages[0].tasks], pages[0].end)

    def test_a_page_that_holds_the_last_task_has_no_end(self, team: Fabric) -> None:
        assert team.store.find(Query(limit=7)).end is None
        assert team.store.find(Query(limit=6)).end == (0, "TASK-2026-03-02-006")
        assert team.store.find(Query(limit=0)).end is None

    @pytest.mark.parametrize("order", ["id", "created", "title"])
    def test_what_happens_between_two_pages_repeats_and_hides_nothing(self, team: Fabric, order: str) -> None:
        query = Query(order=order, limit=3)
        before = [task.id for task in team.store.find(query.but(limit=None)).tasks]
        first = team.store.find(query)
        team.create("A new one that comes first by title")
        team.cancel(first.tasks[0].id)  # and everything below it
        team.edit(first.tasks[1].id, priority="low")
        rest = team.store.find(query.but(limit=None, behind=first.end))

        shown = [task.id for task in (*first.tasks, *rest.tasks)]
        assert [task_id for task_id in shown if task_id in before] == before


class TestRunnable:
    """What could be started now."""

    def test_a_task_is_runnable_once_nothing_holds_it(self, fabric: Fabric, clock: FakeClock) -> None:
        first = fabric.create("First", review=False).task_id
        second = fabric.create("Second", depends_on=[first]).task_id
        parent = fabric.create("Parent", metadata={"waitForChildren": True}).task_id
        child = fabric.create("Child", parent_id=parent, review=False).task_id
        draft = fabric.create("Draft", metadata={"draft": True}).task_id
        vault = fabric.create("Nobody may", resource="vault").task_id
        assert [row.id for row in fabric.ready().tasks] == [first, child]

        fabric.complete(first, actor="ada")
        fabric.complete(child, actor="ada")
        assert [row.id for row in fabric.ready().tasks] == [second, parent]
        run = fabric.claim(second, agent="ada").run_id
        fabric.fail(second, run=run)
        assert [row.id for row in fabric.ready().tasks] == [parent]
        clock.sleep(60)
        assert [row.id for row in fabric.ready().tasks] == [second, parent]
        fabric.cancel(parent)
        assert [row.id for row in fabric.ready().tasks] == [second]
        assert {draft, vault}.isdisjoint(row.id for row in fabric.ready().tasks)

    def test_a_ready_task_that_became_a_draft_is_not_offered(self, fabric: Fabric) -> None:
        ids = [fabric.create(f"Number {number}").task_id for number in range(20)]
        for task_id in ids:
            fabric.edit(task_id, metadata={"draft": True})

        assert fabric.ready().tasks == ()
        with pytest.raises(NothingReady):
            fabric.claim(agent="ada")

    def test_a_full_resource_hides_what_needs_it(self, fabric: Fabric) -> None:
        ids = [fabric.create(f"Number {number}", resource="gpu").task_id for number in range(3)]
        assert len(fabric.ready().tasks) == 3
        fabric.claim(ids[0], agent="ada")
        assert [row.id for row in fabric.ready().tasks] == ids[1:]
        fabric.claim(ids[1], agent="ada")
        assert fabric.ready().tasks == ()

    def test_many_tasks_behind_a_resource_without_slots_do_not_keep_a_claimant_busy(self, fabric: Fabric) -> None:
        for number in range(20):
            fabric.create(f"Number {number}", resource="vault")

        assert fabric.ready().tasks == ()
        with pytest.raises(NothingReady):
            fabric.claim(agent="ada")


_BLOCKED = {"kind": "blocked", "reason": "so", "by": "pm", "since": "2026-03-02T09:00:00.000Z"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_store_answers_a_query_alike(data: st.DataObject, pair: Callable[[], list[Store]]) -> None:
    stores = pair()
    words = st.sampled_from(["api", "API", "ß", "SS", "x%", "_", "a b"])
    queries = st.builds(
        Query,
        status=st.lists(st.sampled_from(["ready", "backlog", "blocked"]), max_size=2, unique=True).map(tuple),
        agent=st.none() | st.sampled_from(["ada", "bob"]),
        unrouted_too=st.booleans(),
        tag=st.none() | words,
        search=st.none() | words,
        hidden=st.booleans(),
        order=st.sampled_from(["id", "schedule"]),
        limit=st.none() | st.integers(0, 4),
        offset=st.integers(0, 3),
        counted=st.booleans(),
        runnable_at=st.none() | st.just("2026-03-02T09:00:00.000Z"),
        waiting_in=st.sampled_from(["ready", "backlog", "blocked"]),
        dependent=st.booleans(),
        busy_resources=st.lists(st.sampled_from(["gpu", "lab"]), max_size=2, unique=True).map(tuple),
    )
    for query in data.draw(st.lists(queries, min_size=1, max_size=10)):
        if query.runnable_at is not None and not query.dependent:
            query = query.but(waiting=data.draw(st.booleans()))  # noqa: PLW2901 - these can be asked for either way
        first, second = (store.find(query) for store in stores)
        assert first == second


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], list[Store]]:
    """Both stores with the same tasks, made once."""
    from tests.contracts.conftest import STORES  # noqa: PLC0415 - the fixtures' own module

    clock = FakeClock("2026-03-02T09:00:00Z")
    made = [make(tmp_path_factory.mktemp(name), clock) for name, make in STORES.items()]
    titles = ["api", "The API", "Straße", "x%y", "under_score", "a b", "plain"]
    for store in made:
        for number in range(1, 40):
            name = f"TASK-2026-03-02-{number * 30:03}"
            fields = {
                "title": titles[number % 7],
                "priority": ["low", "normal", "high", "critical"][number % 4],
                "routing": {"tags": [["api", "ß"], ["a b"], ["SS"]][number % 3]}
                | ({"agent": ["ada", "bob"][number % 2]} if number % 5 else {}),
                "visibility": ["foreground", "hidden"][number % 11 == 0],
            } | ({"resource": ["gpu", "lab"][number % 2]} if number % 3 == 0 else {})
            if number > 10 and number % 4 == 0:
                fields["dependsOn"] = [f"TASK-2026-03-02-{(number - 7) * 30:03}"]
            commit(store, clock, created(name, **fields))
            if number % 6 == 0:
                commit(store, clock, moved(name, "ready", "backlog"))
            if number % 7 == 0:
                draft = moved(name, "ready", "blocked")
                commit(store, clock, msgspec.structs.replace(draft, payload=draft.payload | {"blocked": _BLOCKED}))
    return lambda: made
