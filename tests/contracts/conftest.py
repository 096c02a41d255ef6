"""Every store, new and empty, behind one fixture. `fabric` is the application on top of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy
from aof.service.clock import SystemClock
from aof.store.files.store import FilesystemStore
from aof.store.memory import MemoryStore
from aof.store.port import Clock, Store
from aof.testing import FakeClock


def read_through(
    ask: Callable[..., Any], names: Callable[[Any], list[Any]], limit: int, meanwhile: Callable[[], object] = list
) -> list[Any]:
    """What a list that is read page by page names, with something that happens after each page but the last."""
    seen: list[Any] = []
    page = ask(limit=limit)
    while cursor := getattr(page, "next_cursor", None) or None:
        seen += names(page)
        meanwhile()
        page = ask(limit=limit, cursor=cursor)
    return seen + names(page)


class MakeStore(Protocol):
    """How a test gets a store on any clock."""

    def __call__(self, clock: Clock, *, lock_timeout: float = 10.0) -> Store:
        """Make it."""
        ...


def memory(_folder: Path, clock: Clock, *, lock_timeout: float = 10.0) -> Store:
    """A memory store."""
    return MemoryStore(clock, lock_timeout=lock_timeout)


def filesystem(folder: Path, clock: Clock, *, lock_timeout: float = 10.0) -> Store:
    """A new data directory."""
    root = str(folder / ".aof")
    FilesystemStore.create(root)
    return FilesystemStore(root, clock, durable=False, lock_timeout=lock_timeout)


STORES = {"memory": memory, "filesystem": filesystem}


@pytest.fixture(params=STORES)
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """How to make the store in question on any clock."""
    return partial(STORES[request.param], tmp_path)


@pytest.fixture
def clock() -> FakeClock:
    """A Monday morning that lasts until somebody sleeps."""
    return FakeClock("2026-03-02T09:00:00Z")


@pytest.fixture
def store(make_store: MakeStore, clock: FakeClock) -> Iterator[Store]:
    """A store on the fake clock."""
    made = make_store(clock)
    yield made
    made.close()


@pytest.fixture
def live_store(make_store: MakeStore) -> Iterator[Store]:
    """A store on the real clock, for what really waits."""
    made = make_store(SystemClock())
    yield made
    made.close()


@pytest.fixture
def hasty_store(make_store: MakeStore) -> Iterator[Store]:
    """A store on the real clock that does not wait long for a lock."""
    made = make_store(SystemClock(), lock_timeout=0.1)
    yield made
    made.close()


@pytest.fixture
def fabric(store: Store, clock: FakeClock) -> Fabric:
    """The application on the store; two tasks may use the gpu at once, and nobody the vault."""
    return Fabric(store, clock, Policy(resource_slots={"gpu": 2, "vault": 0}), "pm")


@pytest.fixture
def team(fabric: Fabric, clock: FakeClock) -> Fabric:
    """Eight tasks that differ in everything that a query can ask for."""
    fabric.create("Plan the API", priority="low", tags=["design", "api"], agent="ada", due="2026-03-04")
    fabric.create("Straße 100% bauen", priority="critical", tags=["api v2"], parent_id="001")
    clock.sleep(1)
    fabric.create("Build the api_x", priority="high", depends_on=["001"], parent_id="001", due="2026-03-08T12:00Z")
    fabric.create("Hidden chore", visibility="hidden", backlog=True)
    fabric.create("Train", resource="gpu", tags=["api"])
    fabric.claim("005", agent="bob")
    fabric.create("Done one", review=False, visibility="internal")
    fabric.complete("006", actor="cem")
    fabric.create("Archived one", review=False)
    fabric.complete("007", actor="cem")
    fabric.archive("007")
    fabric.create("Blocked one", agent="bob")
    fabric.block("008", reason="waits for the key")
    return fabric
