"""The command at a session's start comes into Claude Code's settings and goes again, beside what is there."""

from __future__ import annotations

import json

import pytest

from aof.errors import InvalidInput
from aof.service.agents.edits import hook_command, with_hook, without_hook

COMMAND = hook_command(("aof", "prime", "--hook", "--agent", "claude"))
OURS = {"hooks": [{"type": "command", "command": COMMAND, "timeout": 15}]}
OTHER = {"matcher": "startup", "hooks": [{"type": "command", "command": "echo hi"}]}
SETTINGS = [
    "{}",
    '{\n  "model": "opus"\n}\n',
    '{"hooks": {}}',
    '{"hooks": {"Stop": []}}',
    '{"hooks": {"SessionStart": []}}',
    '{"hooks": {"SessionStart": [ ]}}',
    json.dumps({"hooks": {"SessionStart": [OTHER]}}),
    json.dumps({"hooks": {"SessionStart": [OTHER, OTHER]}}, indent=2),
    '{\r\n  "hooks": { // mine\r\n    "SessionStart": [\r\n      {"hooks": [/* none */]},\r\n    ]\r\n  }\r\n}\r\n',
]


@pytest.mark.parametrize("text", SETTINGS)
def test_the_hook_comes_and_goes_and_every_other_byte_stays(text: str) -> None:
    added = with_hook(text, COMMAND)
    assert json.dumps(COMMAND) in added
    assert with_hook(added, COMMAND) == added
    assert without_hook(added) == text
    assert without_hook(text) == text


def test_a_file_that_was_made_for_the_hook_goes_with_it() -> None:
    added = with_hook(None, COMMAND)
    assert json.loads(added) == {"hooks": {"SessionStart": [OURS]}}
    assert without_hook(added) is None
    assert without_hook(with_hook("", COMMAND)) == ""


def test_a_hook_that_a_person_changed_is_not_doubled_and_goes_too() -> None:
    changed = with_hook(SETTINGS[7], COMMAND).replace(
        json.dumps(COMMAND)[1:-1], "/opt/aof prime --agent claude 2>/dev/null"
    )
    assert with_hook(changed, COMMAND) == changed
    assert without_hook(changed) == SETTINGS[7]


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"SessionStart": {}}}', "nonsense"])
def test_settings_that_cannot_hold_a_hook_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        with_hook(text, COMMAND)


@pytest.mark.parametrize(
    "earlier", ["aof prime --agent claude", "/opt/bin/python3 -m aof --data-dir /x prime --agent claude"]
)
def test_the_hook_of_an_earlier_version_is_renewed(earlier: str) -> None:
    text = json.dumps({"hooks": {"SessionStart": [OTHER, {"hooks": [{"type": "command", "command": earlier}]}]}})
    assert json.loads(with_hook(text, COMMAND))["hooks"]["SessionStart"] == [OURS, OTHER]
