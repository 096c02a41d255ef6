"""Help, from the same tables that the parser reads. Must not know what a verb does."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import GLOBAL, SECTIONS, Option, Verb, VerbAction
from aof.adapters.cli.spec.parser import below
from aof.adapters.cli.spec.verbs import VERBS
from aof.adapters.cli.terminal import text_width

_NAME, _LEAST = 22, 12
FIRST = (
    ("plan", ("init", "create", "list", "ready", "show")),
    ("work", ("claim", "progress", "ask", "complete")),
    ("review", ("inbox", "answer", "approve", "reject")),
    ("look", ("board", "log", "doctor")),
)
"""The verbs of the first days, which `aof --help` shows on one screen."""


def help_text(verb: Verb | None, width: int = 0, action: str = "") -> str:
    """Help on one verb or on an action of it, or the first screen; where a terminal is so wide, no line is longer."""
    if verb is None:
        return _first_screen(width)
    chosen = next((one for one in verb.actions if one.name == action), None)
    return _one(verb, width) if chosen is None else _action(verb, chosen, width)


def _first_screen(width: int) -> str:
    summaries = {verb.name: verb.summary for verb in VERBS}
    lines = _told('AOF: tasks for teams of agents. Begin with: aof init, aof create "My first task"', 0, width)
    for group, names in FIRST:
        heads = [f"{group if name == names[0] else '':<8}{name}" for name in names]
        lines += [
            "",
            *_explained([(head, summaries[name]) for head, name in zip(heads, names, strict=True)], 18, width),
        ]
    return "\n".join([*lines, "", *_told("one verb: aof VERB --help; every verb: aof help --all", 0, width)]) + "\n"


def every_verb(width: int = 0) -> str:
    """What `aof help --all` shows: the verbs by what they are for, and the options that all of them have."""
    lines = ["usage: aof VERB [ARGUMENTS] [OPTIONS]", ""]
    for section in SECTIONS:
        listed = sorted((verb for verb in VERBS if verb.section == section), key=lambda verb: verb.order)
        rows = [(verb.name, _with_those_below(verb)) for verb in listed if " " not in verb.name]
        lines += [f"{section}:", *_explained(rows, 13, width), ""]
    return "\n".join([*lines, "options of every verb:", *_options(GLOBAL, width)]) + "\n"


def _with_those_below(verb: Verb) -> str:
    words = ", ".join(one.name.rpartition(" ")[2] for one in below(verb))
    return verb.summary + (f"; also: {words}" if words and not verb.leads else f": {words}" if words else "")


def _one(verb: Verb, width: int) -> str:
    lines = [*_told(f"aof {verb.name}: {verb.summary}", 4, width), "", *_told(f"usage: {verb.usage}", 7, width), ""]
    if verb.help:
        lines += [*_told(verb.help, 0, width), ""]
    if others := below(verb):
        named = [(f"aof {one.name}", one.summary) for one in others]
        lines += ["verbs:" if verb.leads else "see also:", *_explained(named, _NAME, width), ""]
    if verb.actions:
        lines += ["actions:", *_explained([(one.name, one.summary) for one in verb.actions], 12, width), ""]
        lines += [*_told(f"see the options of an action: aof {verb.name} {verb.actions[0].name} --help", 4, width), ""]
    if named := [(argument.name, argument.help) for argument in verb.arguments[1 if verb.actions else 0 :]]:
        lines += ["arguments:", *_explained(named, _NAME, width), ""]
    options = tuple(option for option in verb.options if not option.actions)
    if not verb.leads:
        lines += ["options:", *_options((*options, *GLOBAL), width), ""]
    lines += _told(f"example: {verb.example}", 9, width)
    if verb.aliases:
        lines.append(f"also called: {', '.join(verb.aliases)}")
    return "\n".join(lines) + "\n"


def _action(verb: Verb, action: VerbAction, width: int) -> str:
    lines = [*_told(f"aof {verb.name} {action.name}: {action.summary}", 4, width), ""]
    lines += [*_told(f"usage: {action.usage}", 7, width), ""]
    own = tuple(option for option in verb.options if not option.actions or action.name in option.actions)
    lines += ["options:", *_options((*own, *GLOBAL), width), "", *_told(f"example: {action.example}", 9, width)]
    return "\n".join(lines) + "\n"


def _options(options: tuple[Option, ...], width: int) -> list[str]:
    return _explained([((option.name + " " + option.metavar).strip(), option.help) for option in options], _NAME, width)


def _explained(rows: list[tuple[str, str]], room: int, width: int) -> list[str]:
    """A name and what it is on each line; what does not fit goes on below."""
    lines: list[str] = []
    for name, told in rows:
        first, *others = _told(told, 0, max(width - room - 2, _LEAST) if width else 0)
        lines += [f"  {name:<{room}}{first}", *(" " * (room + 2) + other for other in others)]
    return lines


def _told(text: str, indent: int, width: int) -> list[str]:
    """The text in lines that fit, all but the first indented."""
    if not width or len(text) <= width:
        return [text]

    first, *others = text_width.wrap(text, width - indent)
    return [first, *(" " * indent + other for other in others)]
