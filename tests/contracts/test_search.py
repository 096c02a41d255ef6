"""Search on every store: words in title, description, comments and work log, the best matches first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import InvalidInput
from aof.store.lists import Query


@pytest.fixture
def library(fabric: Fabric) -> Fabric:
    """Tasks that say the same word in different parts."""
    fabric.create("Rotate the refresh token", brief="Every night.\n")
    fabric.create("Login", brief="Needs a refreshed Token, see `auth_x.py`.\n\nGröße ✓ naïve")
    fabric.create("Logout", brief="Nothing")
    fabric.comment("003", "Should it drop the token, too?\nAnd refresh the page?")
    fabric.create("Nightly", review=False)
    fabric.complete("004", summary="refresh of every token done 🚀🫠", actor="cem")
    fabric.create("翻訳を直す", brief="日本語のテスト\n")
    return fabric


def found(fabric: Fabric, text: str, **given: Any) -> list[str]:
    """The last parts of the IDs that a search finds."""
    return [row.id[-3:] for row in fabric.search(text, **given).tasks]


FOUND: dict[str, list[str]] = {
    "refresh token": ["001", "002", "003", "004"],
    "TOKEN Refresh": ["001", "002", "003", "004"],
    "token": ["001", "002", "003", "004"],
    "refreshed": ["002"],
    "tok ref": ["001", "002", "003", "004"],
    "oken": ["001"],
    "auth_x.py": ["002"],
    "größe": ["002"],
    "naive": [],
    "log": ["003", "002"],
    "nothing page": ["003"],
    "日本": ["005"],
    "テスト": ["005"],
    "翻訳": ["005"],
    "03-02-004": ["004"],
    "absent": [],
    "token absent": [],
    "✓": ["002"],
    "✓ größe": ["002"],
    "🫠": ["004"],
    "🚀": ["004"],
    "🚀 absent": [],
    "e000": [],
    "***": [],
    "absent\x00": [],
    "`": [],
}


def test_a_task_is_found_by_the_words_of_all_its_parts(library: Fabric) -> None:
    assert {text: found(library, text) for text in FOUND} == FOUND
    listed = {text: sorted(row.id[-3:] for row in library.list(search=text).tasks) for text in FOUND}
    assert listed == {text: sorted(expected) for text, expected in FOUND.items()}


OPERATORS = ["token AND NOT refresh", 'to"ken', "title:token", "token*", "NEAR(token refresh)", "^token", "(token"]
OPERATORS += ["token OR", "-token", "{title}: token", "'; DROP TABLE texts; --", "\x00", "\ud800"]


def test_no_text_is_an_operator(library: Fabric) -> None:
    plain = set(found(library, "token"))
    for text in OPERATORS:
        assert set(found(library, text)) <= plain, text
        assert set(found(library, "token")) == plain, text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.text(max_size=40).filter(str.strip))
def test_any_text_can_be_searched_for(library: Fabric, text: str) -> None:
    page = library.search(text)
    assert page.total == len(page.tasks)


def test_each_match_says_where_it_is_and_shows_it(library: Fabric) -> None:
    rows = library.search("refresh token").tasks
    assert [(row["where"], row["excerpt"]) for row in rows] == [
        ("title", "Rotate the refresh token"),
        ("description", "Needs a refreshed Token, see `auth_x.py`."),
        ("comments", "- 2026-03-02T09:00:00.000Z pm: Should it drop the token, too?"),
        ("work log", "- 2026-03-02T09:00:00.000Z cem: refresh of every token done 🚀🫠"),
    ]
    library.create("Long", brief="x " * 500 + "needle" + " y" * 500)
    (row,) = library.search("needle").tasks
    assert "needle" in row["excerpt"]
    assert len(row["excerpt"]) <= 162


def test_a_search_has_filters_and_pages(library: Fabric) -> None:
    assert found(library, "token", status="done") == ["004"]
    assert found(library, "token", agent="nobody") == []
    first = library.search("token", limit=3)
    assert (first.total, [row.id[-3:] for row in first.tasks]) == (4, ["001", "002", "003"])
    assert found(library, "token", limit=3, cursor=first.next_cursor) == ["004"]
    library.archive("004")
    assert found(library, "token") == ["001", "002", "003"]
    assert found(library, "token", archived=True) == ["001", "002", "003", "004"]


def test_what_was_written_before_the_question_is_found_and_what_was_replaced_is_not(library: Fabric) -> None:
    assert found(library, "gamma") == []
    library.edit("001", description="alpha beta gamma")
    assert found(library, "gamma") == ["001"]
    library.edit("001", description="alpha")
    assert found(library, "gamma") == []
    library.comment("002", "gamma")
    library.cancel("002")
    assert found(library, "gamma") == ["002"]
    library.edit("003", title="Gamma")
    assert found(library, "gamma") == ["003", "002"]


def test_a_search_for_nothing_or_for_a_book_is_refused(library: Fabric) -> None:
    for text in ("", " ", "x" * 501):
        with pytest.raises(InvalidInput):
            library.search(text)


def test_both_stores_weigh_alike(library: Fabric) -> None:
    orders = [task.id[-3:] for task in library.store.find(Query(search="token", order="relevance", reverse=True)).tasks]
    assert orders == ["001", "002", "003", "004"]
