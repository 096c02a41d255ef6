"""Help, shell completion and the reference page, all from the tables that the parser reads.

`python -m aof.surfaces.cli.help` writes the reference of the command line as Markdown. Must not know what a verb
does.
"""

from __future__ import annotations

import sys

from aof.surfaces.cli import screen
from aof.surfaces.cli.grammar import GLOBAL, MANY, SECTIONS, Option, Verb, VerbAction
from aof.surfaces.cli.parser import UsageError, below
from aof.surfaces.cli.verbs import VERBS

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
    return _help_one(verb, width) if chosen is None else _action(verb, chosen, width)


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
    return "\n".join([*lines, "options of every verb:", *_help_options(GLOBAL, width)]) + "\n"


def _with_those_below(verb: Verb) -> str:
    words = ", ".join(one.name.rpartition(" ")[2] for one in below(verb))
    return verb.summary + (f"; also: {words}" if words and not verb.is_group else f": {words}" if words else "")


def _help_one(verb: Verb, width: int) -> str:
    lines = [*_told(f"aof {verb.name}: {verb.summary}", 4, width), "", *_told(f"usage: {verb.usage}", 7, width), ""]
    if verb.help:
        lines += [*_told(verb.help, 0, width), ""]
    if others := below(verb):
        named = [(f"aof {one.name}", one.summary) for one in others]
        lines += ["verbs:" if verb.is_group else "see also:", *_explained(named, _NAME, width), ""]
    if verb.actions:
        lines += ["actions:", *_explained([(one.name, one.summary) for one in verb.actions], 12, width), ""]
        lines += [*_told(f"see the options of an action: aof {verb.name} {verb.actions[0].name} --help", 4, width), ""]
    if named := [(argument.name, argument.help) for argument in verb.arguments[1 if verb.actions else 0 :]]:
        lines += ["arguments:", *_explained(named, _NAME, width), ""]
    options = tuple(option for option in verb.options if not option.actions)
    if not verb.is_group:
        lines += ["options:", *_help_options((*options, *GLOBAL), width), ""]
    lines += _told(f"example: {verb.example}", 9, width)
    if verb.aliases:
        lines.append(f"also called: {', '.join(verb.aliases)}")
    return "\n".join(lines) + "\n"


def _action(verb: Verb, action: VerbAction, width: int) -> str:
    lines = [*_told(f"aof {verb.name} {action.name}: {action.summary}", 4, width), ""]
    lines += [*_told(f"usage: {action.usage}", 7, width), ""]
    own = tuple(option for option in verb.options if not option.actions or action.name in option.actions)
    lines += ["options:", *_help_options((*own, *GLOBAL), width), "", *_told(f"example: {action.example}", 9, width)]
    return "\n".join(lines) + "\n"


def _help_options(options: tuple[Option, ...], width: int) -> list[str]:
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

    first, *others = screen.wrap(text, width - indent)
    return [first, *(" " * indent + other for other in others)]


_IDS = 'aof list --json 2>/dev/null | grep -o \'"id":"TASK-[0-9-]*"\' | cut -d\'"\' -f4'


def completion_script(shell: str) -> str:
    """The script for a shell."""
    match shell:
        case "bash":
            return _bash()
        case "zsh":
            return f"#compdef aof\nautoload -U +X bashcompinit && bashcompinit\n{_bash()}"
        case "fish":
            return _fish()
    raise UsageError(f"there is no completion for '{shell}'", "use bash, zsh or fish")


def _choices(verb: Verb) -> str:
    """What may stand right after the verb, where that is one of a few words; nothing where it is an ID."""
    first = verb.arguments[0].name if verb.arguments else ""
    words = first.split("|") if "|" in first else []
    return " ".join(_verbs_below(verb) if verb.is_group else words)


def _verbs_below(verb: Verb) -> list[str]:
    return [one.name.rpartition(" ")[2] for one in below(verb)]


def _case(verb: Verb) -> str:
    choices = f' first="{_choices(verb)}"' if _choices(verb) else ""
    choices += f' more="{" ".join(_verbs_below(verb))}"' if below(verb) and not verb.is_group else ""
    names = "|".join(f'"{name}"' if " " in name else name for name in (verb.name, *verb.aliases))
    words = " ".join(option.name for option in (*verb.options, *GLOBAL))
    return f'    {names}) words="{words}"{choices} ;;'


def _bash() -> str:
    cases = "\n".join(map(_case, VERBS))
    verbs = " ".join(name for verb in VERBS for name in (verb.name, *verb.aliases) if " " not in name)
    longer = "|".join(f'"{verb.name}"' for verb in VERBS if " " in verb.name)
    valued = "|".join(option.name for option in GLOBAL if option.metavar)
    return f"""_aof() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" verb="" words="" first="" more=""
  local place
  for ((place = 1; place < COMP_CWORD; place++)); do
    case "${{COMP_WORDS[place]}}" in
      {valued}) ((place++)) ;;
      -*) ;;
      *) verb="${{COMP_WORDS[place]}}"; break ;;
    esac
  done
  local longer="$verb ${{COMP_WORDS[place + 1]}}"
  if ((place + 1 < COMP_CWORD)); then
    case "$longer" in
      {longer}) verb="$longer"; ((place++)) ;;
    esac
  fi
  case "$verb" in
    "") words="{verbs} {" ".join(option.name for option in GLOBAL)}" ;;
{cases}
  esac
  if [[ -n "$verb" && "$word" != -* ]]; then
    words="$({_IDS})"
    [[ $place -eq $((COMP_CWORD - 1)) ]] && words="$words $more"
    [[ -n "$first" && $place -eq $((COMP_CWORD - 1)) ]] && words="$first"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _aof aof
"""


def _fish() -> str:
    lines = ["complete -c aof -f"]
    for verb in VERBS:
        group, _, name = verb.name.rpartition(" ")
        place = f"'__fish_seen_subcommand_from {group}'" if group else "__fish_use_subcommand"
        lines.append(f"complete -c aof -n {place} -a {name} -d {_quoted(verb.summary)}")
        seen = "'" + "; and ".join(f"__fish_seen_subcommand_from {word}" for word in verb.name.split()) + "'"
        for option in verb.options:
            takes = " -r" if option.metavar else ""
            lines.append(f"complete -c aof -n {seen} -l {option.name[2:]}{takes} -d {_quoted(option.help)}")
    names = " ".join(verb.name for verb in VERBS if " " not in verb.name)
    lines.append(f"complete -c aof -n '__fish_seen_subcommand_from {names}' -a \"({_IDS})\"")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_HEAD = """# The `aof` command

<!-- Written by `python -m aof.surfaces.cli.help`; change the rows in the `operations.py` of each subject, or
     `src/aof/surfaces/cli/verbs.py` for verbs that are not an operation. -->

`aof VERB [ARGUMENTS] [OPTIONS]`. A task ID may be shortened to any part that begins at a dash and stands for one task
only: `2026-02-21-001`, `001`.

With `--json` the answer is one line on standard output: `{"schema_version":1,"data":…}`, or
`{"schema_version":1,"error":{"code","message","hint"}}` for refusals and usage errors too. Without it, people get text
on standard output and complaints on standard error.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | refused, or not possible at the moment |
| 2 | the call itself is wrong |
| 3 | not found, or nothing ready |
| 4 | conflict: claimed by another, stale lease |
| 5 | the data needs `aof doctor` |
"""


def reference() -> str:
    """The whole page."""
    parts = [_HEAD, "## Options of every verb\n", "| | |", "| --- | --- |", *map(_row, GLOBAL), ""]
    for verb in sorted(VERBS, key=lambda one: one.name):
        parts += _reference_one(verb)
    return "\n".join(parts).rstrip() + "\n"


def _reference_one(verb: Verb) -> list[str]:
    lines = [f"## aof {verb.name}\n", f"{verb.summary[0].upper()}{verb.summary[1:]}.\n", "```", verb.usage, "```\n"]
    if verb.help:
        lines.append(f"{verb.help}\n")
    if verb.actions:
        lines += ["| action | |", "| --- | --- |"]
        lines += [f"| `{_cell(one.usage)}` | {one.summary} |" for one in verb.actions]
        lines.append("")
    if verb.arguments or verb.options:
        lines += ["| | |", "| --- | --- |"]
        lines += [
            f"| `{_cell(argument.name)}` | {argument.help} |" for argument in verb.arguments[1 if verb.actions else 0 :]
        ]
        lines += [_row(option) for option in verb.options]
        lines.append("")
    lines.append(f"Example: `{verb.example}`\n")
    if verb.aliases:
        lines.append(f"Also: {', '.join(f'`{alias}`' for alias in verb.aliases)}\n")
    return lines


def _row(option: Option) -> str:
    repeated = "…" if option.kind == MANY else ""
    where = f"with {', '.join(f'`{one}`' for one in option.actions)}: " if option.actions else ""
    return f"| `{_cell((option.name + ' ' + option.metavar).strip())}{repeated}` | {where}{option.help} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
