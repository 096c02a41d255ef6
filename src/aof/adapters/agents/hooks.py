"""The command that a client runs when a session begins, so that its agent knows what waits for it.

In the words of Claude Code's settings. The command never stands in the way of a session: it succeeds without AOF, and
whatever AOF answers; AOF ends it itself when it takes too long, and the client does if even that fails.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from aof.adapters.agents.json_edit import with_item, without_items

_PATH = ("hooks", "SessionStart")
_PRIME = re.compile(r"\baof\b.*\bprime\b")
_EARLIER = re.compile(r"\S*(aof|python\S* -m aof)( --data-dir \S+)? prime --agent [a-z]+")
_SECONDS = 15  # that the client waits; AOF gives up sooner


def command_for(words: tuple[str, ...]) -> str:
    """The command of a shell that runs these words and succeeds, also where the first of them is not installed."""
    return f"if command -v {words[0]} >/dev/null 2>&1; then {shlex.join(words)} 2>/dev/null; fi; exit 0"


def with_hook(text: str | None, command: str) -> str:
    """The settings with the command; one that is there already stays, also where a person has changed it."""
    hook = {"hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}
    if text and without_items(text, _PATH, _is_earlier) != text:
        text = without_hook(text)  # what an earlier version wrote may fail a session
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
    command = _command(item)
    return command is not None and _PRIME.search(command) is not None


def _is_earlier(item: Any) -> bool:
    command = _command(item)
    return command is not None and _EARLIER.fullmatch(command) is not None


def _command(item: Any) -> str | None:
    """The only command of an item."""
    hooks = item.get("hooks") if isinstance(item, dict) else None
    commands = [one.get("command") for one in hooks if isinstance(one, dict)] if isinstance(hooks, list) else []
    return commands[0] if len(commands) == 1 and isinstance(commands[0], str) else None


def _fresh(hook: dict[str, Any]) -> str:
    return json.dumps({_PATH[0]: {_PATH[1]: [hook]}}, indent=2, ensure_ascii=False) + "\n"
