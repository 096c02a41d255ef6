"""Parents below parents and many children: what a level costs does not depend on how many there are.

Costs are counted in units of work, loads and questions, so that they do not depend on the machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import CancelRequested, DependencyCycle
from aof.kernel.model import Policy
from aof.store.port import Scope, Store
from aof.testing import FakeClock

_QUESTIONS = ("children", "dependents", "dependents_of", "above", "tree", "reachable")


class CountingStore:
    """Passes everything on to another store, and counts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.counts: Counter[str] = Counter()

    @contextmanager
    def unit(self, scope: Scope) -> Iterator[Any]:
        """One more unit."""
        self.counts["units"] += 1
        with self._store.unit(scope) as unit:
            yield _CountingUnit(unit, self.counts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def cost_of(self, work: Callable[[], Any]) -> Counter[str]:
        """What this one piece of work costs."""
        self.counts.clear()
        work()
        return Counter(self.counts)


class _CountingUnit:
    def __init__(self, unit: Any, counts: Counter[str]) -> None:
        self._unit = unit
        self._counts = counts

    def task(self, task_id: str) -> Any:
        self._counts["loads"] += 1
        return self._unit.task(task_id)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._unit, name)
        if name not in _QUESTIONS:
            return found

        def asked(*given: Any) -> Any:
            self._counts["questions"] += 1
            return found(*given)

        return asked


LEVELS = 60


@pytest.fixture
def counted(store: Store) -> CountingStore:
    """The store, with a counter in front."""
    return CountingStore(store)


@pytest.fixture
def fabric(counted: CountingStore, clock: FakeClock) -> Fabric:
    """The application on the counting store."""
    return Fabric(counted, clock, Policy(), "pm")


def chain(fabric: Fabric, levels: int) -> list[str]:
    """Tasks of which each is the parent of the next."""
    made: list[str] = []
    for level in range(levels):
        made.append(fabric.create(f"Level {level}", parent_id=made[-1] if made else None).task_id)
    return made


class TestDepth:
    """Parents below parents."""

    def test_creating_a_child_costs_the_same_on_every_level(self, fabric: Fabric, counted: CountingStore) -> None:
        made = chain(fabric, 2)

        def deeper() -> None:
            made.append(fabric.create("Deeper", parent_id=made[-1]).task_id)

        costs = [counted.cost_of(deeper) for _ in range(LEVELS)]

        assert costs == [costs[0]] * len(costs)
        assert costs[0]["units"] <= 2
        assert costs[0]["questions"] == 0

    @pytest.mark.parametrize("levels", [3, LEVELS])
    def test_cancelling_a_chain_is_one_pass(self, fabric: Fabric, counted: CountingStore, levels: int) -> None:
        made = chain(fabric, levels)

        cost = counted.cost_of(lambda: fabric.cancel(made[0], reason="enough"))

        assert {fabric.get(one).status for one in made} == {"cancelled"}
        assert cost["units"] <= 3
        assert cost["loads"] <= 3 * levels + 3
        assert cost["questions"] <= 6

    @pytest.mark.parametrize("levels", [3, LEVELS])
    def test_settling_the_last_worker_ends_the_whole_chain_in_one_pass(
        self, fabric: Fabric, counted: CountingStore, levels: int
    ) -> None:
        made = chain(fabric, levels)
        fabric.claim(made[-1], agent="ada", worker="process")
        fabric.cancel(made[0])
        assert fabric.get(made[0]).status == "ready", "it waits for the worker far below"

        cost = counted.cost_of(lambda: fabric.settle(made[-1]))

        assert {fabric.get(one).status for one in made} == {"cancelled"}
        assert cost["units"] <= 5
        assert cost["loads"] <= 5 * levels + 5

    def test_nothing_is_put_below_a_finished_task_whose_ancestor_is_cancelled(
        self, fabric: Fabric, counted: CountingStore
    ) -> None:
        made = chain(fabric, LEVELS)
        for one in reversed(made[1:]):
            fabric.complete(one, actor="ada")
            fabric.approve(one, actor="pm")
        fabric.cancel(made[0])

        with pytest.raises(CancelRequested, match=made[0]):
            fabric.create("Too late", parent_id=made[-1])
        with pytest.raises(CancelRequested, match=made[0]):
            fabric.retry(made[-1], reason="again")

        counted.counts.clear()
        with pytest.raises(CancelRequested, match=made[0]):
            fabric.create("Too late", parent_id=made[-1])
        assert counted.counts["units"] <= 3, "the ancestors are found at once, not level by level"

    def test_a_task_cannot_be_put_below_what_stands_below_it(self, fabric: Fabric, counted: CountingStore) -> None:
        made = chain(fabric, LEVELS)

        def link() -> None:
            with pytest.raises(DependencyCycle):
                fabric.link(made[0], "parent", made[-1])

        cost = counted.cost_of(link)

        assert cost["units"] <= 3
        assert cost["loads"] <= 6

    def test_the_ancestors_and_the_whole_tree_are_known(self, fabric: Fabric) -> None:
        top, middle, low = chain(fabric, 3)
        beside = fabric.create("Beside", parent_id=top, depends_on=[low]).task_id

        with fabric.store.unit(Scope(read=frozenset({top}))) as unit:
            assert unit.above(low) == (middle, top)
            assert unit.above(top) == ()
            assert unit.above("TASK-2026-03-02-999") == ()
            assert unit.tree(top) == {top: (middle, beside), middle: (low,), beside: (), low: ()}
            assert unit.tree(low) == {low: ()}
            assert unit.dependents_of((top, low)) == {top: (), low: (beside,)}


class TestWidth:
    """Many children of one parent."""

    @pytest.mark.parametrize("count", [5, 300])
    def test_what_many_children_cost_is_what_each_of_them_costs(
        self, fabric: Fabric, counted: CountingStore, count: int
    ) -> None:
        parent = fabric.create("Parent").task_id
        costs = [counted.cost_of(lambda: fabric.create("Child", parent_id=parent)) for _ in range(count)]
        assert costs == [costs[0]] * count

        shown = counted.cost_of(lambda: fabric.show(parent))
        cancelled = counted.cost_of(lambda: fabric.cancel(parent))
        archived = counted.cost_of(lambda: fabric.archive(parent))

        assert shown["loads"] + shown["questions"] <= 10
        assert cancelled["units"] <= 3
        assert cancelled["loads"] <= 3 * count + 6
        assert cancelled["questions"] <= 6
        assert archived["units"] <= 2
        assert archived["loads"] <= 4
        assert fabric.list(status=["cancelled"]).total == count
