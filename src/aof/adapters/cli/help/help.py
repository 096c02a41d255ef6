"""Help, from the same tables that the parser reads. Must not know what a verb does."""

from __future__ import annotations

from aof.adapters.cli.spec.grammar import GLOBAL, SECTIONS, Option, Verb, VerbAction
from aof.adapters.cli.spec.verbs import VERBS
from aof.adapters.cli.terminal import text_width

_NAME, _LEAST = 22, 12


def help_text(verb: Verb | None, width: int = 0, action: str = "") -> str:
    """Help on one verb or on an action of it, or the list of all; where a terminal is so wide, no line is longer."""
    if verb is None:
        return _overview(width)
    chosen = next((one for one in verb.actions if one.name == action), None)
    return _one(verb, width) if chosen is None else _action(verb, chosen, width)


def _overview(width: int) -> str:
    lines = [*_told("AOF: tasks for teams of agents, in plain files.", 0, width), ""]
    lines += ["usage: aof VERB [ARGUMENTS] [OPTIONS]", ""]
    for section in SECTIONS:
        listed = sorted((verb for verb in VERBS if verb.section == section), key=lambda verb: verb.order)
        lines += [f"{section}:", *_explained([(verb.name, verb.summary) for verb in listed], 15, width), ""]
    lines += ["options of every verb:", *_options(GLOBAL, width), ""]
    return "\n".join([*lines, *_told('begin with: aof init, then: aof create "My first task"', 0, width)]) + "\n"


def _one(verb: Verb, width: int) -> str:
    lines = [*_told(f"aof {verb.name}: {verb.summary}", 4, width), "", *_told(f"usage: {verb.usage}", 7, width), ""]
    if verb.help:
        lines += [*_told(verb.help, 0, width), ""]
    if verb.actions:
        lines += ["actions:", *_explained([(one.name, one.summary) for one in verb.actions], 12, width), ""]
        lines += [*_told(f"see the options of an action: aof {verb.name} {verb.actions[0].name} --help", 4, width), ""]
    if named := [(argument.name, argument.help) for argument in verb.arguments[1 if verb.actions else 0 :]]:
        lines += ["arguments:", *_explained(named, _NAME, width), ""]
    options = tuple(option for option in verb.options if not option.actions)
    lines += ["options:", *_options((*options, *GLOBAL), width), "", *_told(f"example: {verb.example}", 9, width)]
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
