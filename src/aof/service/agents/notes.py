"""What an agent reads about AOF: notes in a file of its project, a skill, and the output of a hook of its sessions."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from aof.service.agents.edits import block_in, with_block, with_item, without_block, without_items
from aof.support.hashing import hexdigest

BEGIN = "<!-- aof: begin (written by 'aof init', taken away by 'aof init --remove') -->"
END = "<!-- aof: end -->"
_MARK = re.compile(r"\n<!-- aof: ([0-9a-f]{12}), written by 'aof init', taken away by 'aof init --remove' -->\s*\Z")
_PATH = ("hooks", "SessionStart")
_PRIME = re.compile(r"\baof\b.*\bprime\b")
_EARLIER = re.compile(r"\S*(aof|python\S* -m aof)( --data-dir \S+)? prime --agent [a-z]+")
_SECONDS = 15  # that the client waits; AOF gives up sooner
_FOR = re.compile(r"^<!-- for ([a-z, ]+) -->\r?$", re.MULTILINE)
_TEXT = """\
## Tasks

Work in this project is tracked by AOF. Begin a session with `aof prime`, take a task before you work on it, and report
how it ended. If you have `aof_*` tools, use them; else the `aof` command, as the skill `aof` and `aof --help` say.
Do not edit files below `.aof`.
"""


def readers_of_notes(text: str | None) -> tuple[str, ...] | None:
    """The kinds that the notes are for, none where the notes do not say; None where there are no notes."""
    block = block_in(text, BEGIN, END) if text else None
    if block is None:
        return None
    found = _FOR.search(block)
    return tuple(name.strip() for name in found[1].split(",")) if found else ()


def with_notes(text: str | None, kinds: tuple[str, ...]) -> str:
    """The text with notes for these kinds."""
    return with_block(text, BEGIN, f"<!-- for {', '.join(kinds)} -->\n{_TEXT}", END)


def without_notes(text: str) -> str | None:
    """The text as it was before; None for no file at all."""
    return without_block(text, BEGIN, END)


def are_untouched_notes(text: str) -> bool:
    """Whether nobody has written into the notes."""
    block = block_in(text, BEGIN, END)
    return block is not None and "".join(_TEXT.split()) in "".join(block.split())


def skill() -> str:
    """The file of the skill, with a mark that tells whether somebody has edited it."""
    text = Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8")
    return f"{text}\n<!-- aof: {_digest(text)}, written by 'aof init', taken away by 'aof init --remove' -->\n"


def is_untouched_skill(text: str) -> bool:
    """Whether a file is as some version of AOF has written it; git may have changed its line ends."""
    plain = text.replace("\r\n", "\n")
    mark = _MARK.search(plain)
    return mark is not None and mark[1] == _digest(plain[: mark.start()])


def _digest(text: str) -> str:
    return hexdigest(text.encode())[:12]


def hook_command(words: tuple[str, ...]) -> str:
    """The command of a shell that runs these words and succeeds, also where the first of them is not installed."""
    return f"if command -v {words[0]} >/dev/null 2>&1; then {shlex.join(words)} 2>/dev/null; fi; exit 0"


def with_hook(text: str | None, command: str) -> str:
    """The settings with the command; one that is there already stays, also where a person has changed it."""
    hook = {"hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}
    if text and without_items(text, _PATH, lambda item: _EARLIER.fullmatch(_command(item)) is not None) != text:
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
    return _PRIME.search(_command(item)) is not None


def _command(item: Any) -> str:
    """The only command of an item; empty where there is none, or more than one."""
    hooks = item.get("hooks") if isinstance(item, dict) else None
    commands = [one.get("command") for one in hooks if isinstance(one, dict)] if isinstance(hooks, list) else []
    return commands[0] if len(commands) == 1 and isinstance(commands[0], str) else ""


def _fresh(hook: dict[str, Any]) -> str:
    return json.dumps({_PATH[0]: {_PATH[1]: [hook]}}, indent=2, ensure_ascii=False) + "\n"
