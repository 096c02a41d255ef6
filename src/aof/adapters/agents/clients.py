"""The agents that AOF knows how to connect, as data. A new one is a row here."""

from __future__ import annotations

from typing import Literal

import msgspec

_TOML_BEGIN, _TOML_END = "# aof: begin (written by 'aof init', taken away by 'aof init --remove')", "# aof: end"
NOTES_BEGIN = "<!-- aof: begin (written by 'aof init', taken away by 'aof init --remove') -->"
NOTES_END = "<!-- aof: end -->"
TOML_MARKS = (_TOML_BEGIN, _TOML_END)
NOTES = """\
## Tasks

Work in this project is tracked by AOF. Begin a session with `aof prime`. Use the `aof_*` tools, or the `aof` command:

- take a task before you work on it: `aof_task_claim`, or `aof claim --agent NAME`
- finish it with a summary: `aof_task_complete`, or `aof complete ID --summary "…"`
- say what is in the way: `aof_task_block`, or `aof block ID --reason "…"`
- give work to others: `aof_dispatch`, or `aof create "TITLE" --brief "…"`

Do not edit files below `.aof/events` or `.aof/runs`.
"""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of agent: how it is recognised, where its settings lie, and which file it reads for notes.

    `also` are other names that people try, in small letters and without what stands between their words.
    """

    name: str
    title: str
    also: tuple[str, ...]
    signs: tuple[str, ...]
    notes: str
    settings: str | None = None
    form: Literal["json", "toml"] = "json"


KINDS: tuple[Kind, ...] = (
    Kind(
        name="claude",
        title="Claude Code",
        also=("claudecode", "claudecli"),
        signs=(".claude", "CLAUDE.md", ".mcp.json"),
        notes="CLAUDE.md",
        settings=".mcp.json",
    ),
    Kind(
        name="codex",
        title="Codex",
        also=("codexcli", "openaicodex"),
        signs=(".codex",),
        notes="AGENTS.md",
        settings=".codex/config.toml",
        form="toml",
    ),
    Kind(
        name="cursor",
        title="Cursor",
        also=("cursoragent", "cursorcli"),
        signs=(".cursor",),
        notes="AGENTS.md",
        settings=".cursor/mcp.json",
    ),
    Kind(
        name="generic",
        title="any agent that reads AGENTS.md",
        also=("agentsmd", "any", "other"),
        signs=("AGENTS.md",),
        notes="AGENTS.md",
    ),
)
_BY_NAME = {name: kind for kind in KINDS for name in (kind.name, *kind.also)}


def kind_named(name: str) -> Kind | None:
    """The kind that a person means: `Claude-Code` and `claude_code` are the same name."""
    return _BY_NAME.get("".join(one for one in name.lower() if one.isalnum()))
