"""The pictures of the docs: `make pictures` draws them anew, any other run only sees that it could."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import expect

from tests.e2e.browser.conftest import Visitor
from tests.e2e.browser.month import FLOW, LAMP, month
from tests.e2e.browser.palette import reduced
from tests.e2e.browser.served import Served, serving_on
from tests.e2e.browser.views import addresses
from tests.support.repository import ROOT

WANTED = os.environ.get("AOF_PICTURES")
KEPT = ROOT / "docs" / "howto" / "pictures"
_MOST_BYTES = 60_000
_WIDE: dict[str, Any] = {"viewport": {"width": 1180, "height": 660}, "color_scheme": "light"}
_LOW: dict[str, Any] = {"viewport": {"width": 1180, "height": 400}, "color_scheme": "light"}
_DARK = _WIDE | {"color_scheme": "dark"}
_PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 760}, "color_scheme": "light"}


class Picture(NamedTuple):
    """A file, the view that it shows, and how."""

    name: str
    view: str
    options: dict[str, Any]


PICTURES = (
    Picture("needs-you", "needs", _WIDE),
    Picture("board", "board", _WIDE),
    Picture("board-dark", "board", _DARK),
    Picture("task", "task", _WIDE),
    Picture("agents", "agents", _LOW),
    Picture("workflow", "workflow", _LOW),
    Picture("activity", "activity", _WIDE),
    Picture("graph", "graph", _LOW),
    Picture("insights", "insights", _WIDE),
    Picture("needs-you-phone", "needs", _PHONE),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service after a month of work."""
    with serving_on(month(tmp_path_factory.mktemp("month"))) as one:
        yield one


@pytest.mark.parametrize("picture", PICTURES if WANTED else PICTURES[-1:], ids=lambda one: one.name)
def test_a_view_becomes_a_small_picture(served: Served, visitor: Visitor, picture: Picture) -> None:
    person = visitor(served, **picture.options)
    person.enter()
    page = person.open(addresses(served, FLOW if picture.view == "workflow" else LAMP)[picture.view])
    expect(page.locator("#verified")).to_have_text(re.compile(r"verified to event \d+$"))
    made = reduced(page.screenshot(animations="disabled", caret="hide"))
    assert len(made) < _MOST_BYTES
    if WANTED:
        (ROOT / WANTED).mkdir(parents=True, exist_ok=True)
        (ROOT / WANTED / f"{picture.name}.png").write_bytes(made)


def test_every_picture_is_kept_small_and_shown_in_the_docs() -> None:
    kept = {path.stem: path for path in KEPT.glob("*.png")}
    assert set(kept) == {picture.name for picture in PICTURES}
    assert not [name for name, path in kept.items() if path.stat().st_size >= _MOST_BYTES]
    shown = "\n".join(page.read_text("utf-8") for page in Path(ROOT / "docs").rglob("*.md"))
    assert not [name for name in kept if f"pictures/{name}.png" not in shown]
