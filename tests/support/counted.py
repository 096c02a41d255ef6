"""A store that counts what a command costs: the units it begins, the tasks it loads, the questions it asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aof.store.port import Scope, Store

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
