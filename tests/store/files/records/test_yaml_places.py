"""Line and column of every value, in every style that a strict document can have."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import yaml
from hypothesis import given, settings

from aof.store.files.strict_yaml import YamlPath, yaml_places

DOCUMENT = """\
# a comment
schemaVersion: 1
agents:
- id: ada   # dashes may stand where the key stands
  'roles': [dev, "ops: x"]
  note: |
    id: not a key
      - nor an item
  empty:
- {id: bob, "team": eng,
   capabilities: [a, {id: b, proficiency: 0.5}]}
teams:
  -
    id: eng
    limits:
      maxConcurrent: 4
  - long text
    that goes on: no
routing: []
"""


def test_keys_and_items_stand_where_an_editor_shows_them() -> None:
    found = yaml_places(DOCUMENT.replace("that goes on: no", "that goes on"))
    assert {path: found[path] for path in _EXPECTED} == _EXPECTED
    assert ("agents", 0, "note", "id") not in found


_EXPECTED: dict[YamlPath, tuple[int, int]] = {
    ("schemaVersion",): (2, 1),
    ("agents",): (3, 1),
    ("agents", 0): (4, 3),
    ("agents", 0, "id"): (4, 3),
    ("agents", 0, "roles"): (5, 3),
    ("agents", 0, "roles", 1): (5, 18),
    ("agents", 0, "note"): (6, 3),
    ("agents", 0, "empty"): (9, 3),
    ("agents", 1): (10, 3),
    ("agents", 1, "team"): (10, 13),
    ("agents", 1, "capabilities"): (11, 4),
    ("agents", 1, "capabilities", 1, "proficiency"): (11, 30),
    ("teams", 0): (14, 5),
    ("teams", 0, "limits", "maxConcurrent"): (16, 7),
    ("teams", 1): (17, 5),
    ("routing",): (19, 1),
}

KEYS = st.text("abcXYZ019_.", min_size=1, max_size=6).filter(lambda text: text[0].isalpha())
SCALARS = (
    st.integers(0, 99) | st.booleans() | KEYS | st.sampled_from(["a b", "it's", 'say "x"', "- no", "a: b", "#x", ""])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)


def paths(value: Any, at: YamlPath = ()) -> set[YamlPath]:
    """Every key and item of a document."""
    items: list[tuple[Any, Any]] = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return {(*at, key) for key, _ in items}.union(*(paths(item, (*at, key)) for key, item in items))


@settings(max_examples=200)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.sampled_from([None, True, False]))
def test_whatever_a_document_holds_each_place_is_where_that_key_or_item_stands(
    document: dict[str, Any], flow: Any
) -> None:
    text = yaml.safe_dump(document, default_flow_style=flow, sort_keys=False, allow_unicode=True, width=60)
    found = yaml_places(text)
    lines = text.splitlines()
    assert paths(document) == set(found)
    for path, (line, column) in found.items():
        rest = lines[line - 1][column - 1 :]
        if isinstance(path[-1], str) and not rest.startswith("? "):
            assert rest.lstrip("'\"").startswith(path[-1])
