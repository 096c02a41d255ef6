"""A server in YAML settings: one line comes and goes, and nothing else changes."""

from __future__ import annotations

import pytest
import ryaml

from aof.errors import InvalidInput
from aof.service.agents.edits import with_yaml_server, without_yaml_server, yaml_server_in

ENTRY = {"enabled": True, "cmd": "aof", "args": ["mcp"], "envs": {"AOF_ACTOR": "goose"}}
SETTINGS = [
    "GOOSE_MODEL: x\n",
    "# mine\nextensions:\n  developer:\n    enabled: true\n    type: builtin\nGOOSE_MODEL: x\n",
    "extensions:\n    # four spaces\n    developer: {enabled: true}\n\nGOOSE_MODEL: x\n",
    "extensions: {}\nGOOSE_MODEL: x\n",
]


@pytest.mark.parametrize("text", SETTINGS)
def test_a_server_comes_and_goes_and_every_other_byte_stays(text: str) -> None:
    added = with_yaml_server(text, "extensions", "aof", ENTRY)
    assert ryaml.loads(added)["extensions"]["aof"] == ENTRY
    assert yaml_server_in(added, "extensions", "aof") == ENTRY
    assert with_yaml_server(added, "extensions", "aof", ENTRY) == added
    assert without_yaml_server(added, "extensions", "aof") == text
    assert without_yaml_server(text, "extensions", "aof") == text


def test_a_file_without_a_last_line_end_keeps_its_settings() -> None:
    added = with_yaml_server("a: 1", "extensions", "aof", ENTRY)
    assert ryaml.loads(added) == {"a": 1, "extensions": {"aof": ENTRY}}


def test_a_server_that_its_client_wrote_over_several_lines_is_renewed_and_removed() -> None:
    spread = "extensions:\n  aof:\n    enabled: true\n    args:\n    - mcp\n  developer:\n    enabled: true\n"
    renewed = with_yaml_server(spread, "extensions", "aof", ENTRY)
    assert ryaml.loads(renewed) == {"extensions": {"aof": ENTRY, "developer": {"enabled": True}}}
    assert without_yaml_server(spread, "extensions", "aof") == "extensions:\n  developer:\n    enabled: true\n"


@pytest.mark.parametrize(
    "text",
    [
        "extensions: {developer: {enabled: true}}\n",
        "- a\n",
        "a: [\n",
        "extensions: 3\n",
        "extensions: {} # none\n",
        '"extensions":\n  a: 1\n',
        "a: 1\na: 2\n",
    ],
)
def test_settings_that_cannot_be_changed_line_by_line_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        with_yaml_server(text, "extensions", "aof", ENTRY)
