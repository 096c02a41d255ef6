"""Adding to other people's files, and taking it away again, without touching anything else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.errors import InvalidInput
from aof.service.agents.edits import member, with_block, with_member, without_block, without_member

PATH = ("mcpServers", "aof")
VALUE = {"command": "aof", "args": ["mcp"]}
BEGIN, END = "<!-- begin -->", "<!-- end -->"
SETTINGS = [
    '{\n  "mcpServers": {\n    "github": {"command": "gh"}\n  },\n  "other": [1, 2]\n}\n',
    '{"mcpServers":{"github":{"command":"gh"}}}',
    '// mine\n{\n\t/* all */ "mcpServers": {\n\t\t"x": {"a": "}{,"}, // one\n\t\t"y": {}\n\t}\n}',
    '{\r\n  "theme": "dark"\r\n}\r\n',
    '\ufeff{"a": "\\"mcpServers\\": {"}',
    "{}",
    "{ }\n",
    '{\n  "mcpServers": {}\n}\n',
    '{"mcpServers": {}}',
    '{"mcpServers": { }}',
    '{"mcpServers": {/* none yet */}}',
    "{ // nothing\n}",
    '{"a": [1, 2,], }',
    '{"mcp\\u0053ervers": {"x": {}}}',
]
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("text", SETTINGS)
def test_a_member_comes_and_goes_and_every_other_byte_stays(text: str) -> None:
    added = with_member(text, PATH, VALUE)
    assert added != text
    assert with_member(added, PATH, VALUE) == added
    assert without_member(added, PATH) == text
    assert without_member(text, PATH) == text
    position = next((place for place in range(len(text)) if added[place] != text[place]), len(text))
    assert added.endswith(text[position:])


@given(data=st.dictionaries(st.text(max_size=4), _json, max_size=3), indent=st.sampled_from([None, 2, 4]))
def test_any_settings_hold_what_they_held_and_the_new_member(data: dict[str, object], indent: int | None) -> None:
    text = json.dumps(data, indent=indent)
    added = with_member(text, PATH, VALUE)
    assert json.loads(added) == data | {"mcpServers": {"aof": VALUE}}
    assert json.loads(without_member(added, PATH)) == data


def test_a_member_that_has_changed_is_renewed_in_its_place() -> None:
    added = with_member(SETTINGS[0], PATH, {"command": "old"})
    renewed = with_member(added, PATH, VALUE)
    assert json.loads(renewed)["mcpServers"] == {"aof": VALUE, "github": {"command": "gh"}}
    assert without_member(renewed, PATH) == SETTINGS[0]


@pytest.mark.parametrize(
    "text",
    [
        "[1]", '{"a": 1', '{"mcpServers": 3}', "nonsense", "{'a': 1}", "{a: 1}", '{"a" 1}', '{"a": 1 "b": 2}',
        '{"a": "open}', '{"a": 1} more', "\n", '{"mcpServers": null}',
    ],
)  # fmt: skip
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        with_member(text, PATH, VALUE)
    with pytest.raises(InvalidInput):
        without_member(text, PATH)


def test_what_is_there_can_be_read_where_it_is_plain() -> None:
    assert member('{"mcpServers": {"aof": [1]}}', PATH) == (True, [1])
    assert member('{"mcpServers": {"aof": [/* one */ 1]}}', PATH) == (True, None)
    assert member('{"mcpServers": {}}', PATH) == (False, None)


@given(text=st.text(alphabet="ab#\n", max_size=12))
def test_a_block_comes_and_goes_and_the_text_stays(text: str) -> None:
    added = with_block(text, BEGIN, "some\nnotes\n", END)
    assert with_block(added, BEGIN, "some\nnotes\n", END) == added
    assert added.startswith(text)
    assert without_block(added, BEGIN, END) == text
    assert without_block(text, BEGIN, END) == text


def test_a_block_is_renewed_where_it_stands() -> None:
    text = with_block("# Mine\n", BEGIN, "old", END) + "\n## More of mine\n"
    renewed = with_block(text, BEGIN, "new\nnotes", END)
    assert renewed == text.replace("old", "new\nnotes")
    assert without_block(renewed, BEGIN, END) == "# Mine\n\n## More of mine\n"


def test_a_block_takes_the_line_ends_of_its_file() -> None:
    added = with_block("# Mine\r\n", BEGIN, "a\nb", END)
    assert "\n" not in added.replace("\r\n", "")
    assert without_block(added, BEGIN, END) == "# Mine\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{BEGIN}\nno end\n",
        f"{END}\n",
        f"`{BEGIN}` and `{END}` are marks\n",
        f"{BEGIN} {END}\n",
        f"{END}\n{BEGIN}\n",
    ],
)
def test_marks_that_make_no_block_are_somebodys_text(text: str) -> None:
    added = with_block(text, BEGIN, "notes", END)
    assert added.startswith(text)
    assert with_block(added, BEGIN, "notes", END) == added
    assert without_block(added, BEGIN, END) == without_block(text, BEGIN, END) == text


def test_a_file_that_was_made_for_a_block_goes_with_it() -> None:
    assert without_block(with_block(None, BEGIN, "notes", END), BEGIN, END) is None
