"""Help, from the same tables that the parser reads. Must not know what a verb does."""

from __future__ import annotations

from aof.adapters.cli.grammar import GLOBAL, Option, Verb
from aof.adapters.cli.vocabulary import VERBS

_GROUPS = (
    ("see", ("ready", "list", "blocked", "show", "status", "graph", "board", "watch", "log", "replay", "snapshot")),
    ("work", ("claim", "heartbeat", "progress", "complete", "fail", "release")),
    (
        "plan",
        (
            "create",
            "edit",
            "update",
            "dep",
            "link",
            "unlink",
            "block",
            "unblock",
            "pause",
            "resume",
            "cancel",
            "retry",
            "archive",
        ),
    ),
    ("review", ("approve", "reject")),
    ("connect", ("prime", "mcp", "token")),
    ("serve", ("tick", "up")),
    ("team", ("org", "workflow")),
    ("messages", ("send", "session-end", "handoff")),
    (
        "data",
        (
            "init",
            "sync",
            "recover",
            "doctor",
            "reindex",
            "export",
            "import",
            "bench",
            "completion",
            "version",
            "help",
        ),
    ),
)


def help_text(verb: Verb | None) -> str:
    """Help on one verb, or the list of all."""
    return _overview() if verb is None else _one(verb)


def _overview() -> str:
    by_name = {verb.name: verb for verb in VERBS}
    lines = ["AOF: tasks for teams of agents, in plain files.", "", "usage: aof VERB [ARGUMENTS] [OPTIONS]", ""]
    for group, names in _GROUPS:
        lines += [f"{group}:", *(f"  {name:<12}{by_name[name].summary}" for name in names), ""]
    lines += ["options of every verb:", *_options(GLOBAL), "", 'begin with: aof init, then: aof create "My first task"']
    return "\n".join(lines) + "\n"


def _one(verb: Verb) -> str:
    lines = [f"aof {verb.name}: {verb.summary}", "", f"usage: {verb.usage}", ""]
    if verb.help:
        lines += [verb.help, ""]
    if verb.arguments:
        lines += ["arguments:", *(f"  {argument.name:<22}{argument.help}" for argument in verb.arguments), ""]
    lines += ["options:", *_options((*verb.options, *GLOBAL)), "", f"example: {verb.example}"]
    if verb.aliases:
        lines.append(f"also called: {', '.join(verb.aliases)}")
    return "\n".join(lines) + "\n"


def _options(options: tuple[Option, ...]) -> list[str]:
    return [f"  {(option.name + ' ' + option.metavar).strip():<22}{option.help}" for option in options]
