"""The command that a client runs when a session begins, so that its agent knows what waits for it.

In the words of Claude Code's settings. Must not know the command.
"""

from __future__ import annotations

import json
import re
from typing import Any

from aof.adapters.agents.json_edit import with_item, without_items

_PATH = ("hooks", "SessionStart")
_PRIME = re.compile(r"\baof\b.*\bprime\b")


def with_hook(text: str | None, command: str) -> str:
    """The settings with the command; one that is there already stays, also where a person has changed it."""
    hook = {"hooks": [{"type": "command", "command": command}]}
    if not text:
        fresh = _fresh(hook)
        return fresh if text is None else fresh.rstrip()
    return text if without_hook(text) != text else with_item(text, _PATH, hook)


def without_hook(text: str) -> str | None:
    """The settings as they were before; None for no file at all."""
    try:
        only = json.loads(text)["hooks"]["SessionStart"][0]
    except (ValueError, LookupError, TypeError):
        only = None
    if only is not None and _is_ours(only) and text.rstrip() == _fresh(only).rstrip():
        return "" if text == text.rstrip() else None
    return without_items(text, _PATH, _is_ours)


def _is_ours(item: Any) -> bool:
    """Whether an item runs `aof prime` and nothing else."""
    hooks = item.get("hooks") if isinstance(item, dict) else None
    commands = [one.get("command") for one in hooks if isinstance(one, dict)] if isinstance(hooks, list) else []
    return len(commands) == 1 and isinstance(commands[0], str) and _PRIME.search(commands[0]) is not None


def _fresh(hook: dict[str, Any]) -> str:
    return json.dumps({_PATH[0]: {_PATH[1]: [hook]}}, indent=2, ensure_ascii=False) + "\n"
