"""A service, a browser, and a person who signed in. A module shares one service; `alone` is for one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser.chromium import started
from tests.e2e.browser.person import PATIENCE, Person
from tests.e2e.browser.served import Served, serving

expect.set_options(timeout=PATIENCE)
Visitor = Callable[..., Person]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for each worker."""
    with started() as one:
        yield one


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The module's service."""
    with serving(tmp_path_factory.mktemp("lighthouse")) as one:
        yield one


@pytest.fixture
def services(tmp_path: Path) -> Iterator[ExitStack]:
    """What serves during one test. It stops after everybody has left: a page that loses its service complains.

    It asks for the folder of the test, so that pytest removes that later: without its tokens, a service lets nobody in.
    """
    assert tmp_path.is_dir()
    with ExitStack() as begun:
        yield begun


@pytest.fixture
def alone(tmp_path: Path, services: ExitStack) -> Served:
    """A service for one test: to be stopped, filled or locked out of."""
    return services.enter_context(serving(tmp_path / "lighthouse"))


@pytest.fixture
def visitor(browser: Browser, request: pytest.FixtureRequest, services: ExitStack) -> Iterator[Visitor]:
    """People who come to a service; each is watched, and checked at the end, while the `services` still serve."""
    came: list[Person] = []

    def come(served: Served, **options: Any) -> Person:
        came.append(Person(browser, served, **options))
        return came[-1]

    yield come
    failed = getattr(request.node, "failed", False)
    for one in came:
        one.leave(check=not failed)


@pytest.fixture
def person(visitor: Visitor, served: Served) -> Person:
    """Somebody who is in at the module's service."""
    one = visitor(served)
    one.enter()
    return one


@pytest.fixture
def page(person: Person) -> Page:
    """An empty tab of theirs."""
    return person.context.new_page()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Remember that a test failed, so that its end is not checked as well."""
    report = yield
    if report.when == "call" and report.failed:
        item.failed = True  # type: ignore[attr-defined]
    return report
