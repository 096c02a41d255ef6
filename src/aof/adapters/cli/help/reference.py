"""The reference of the command line as Markdown, from the same tables that the parser reads.

`python -m aof.adapters.cli.help.reference > docs/reference/cli.md` writes it; a test compares.
Must not know what a verb does.
"""

from __future__ import annotations

import sys

from aof.adapters.cli.spec.grammar import GLOBAL, MANY, Option, Verb
from aof.adapters.cli.spec.verbs import VERBS

_HEAD = """# The `aof` command

<!-- Written by `python -m aof.adapters.cli.help.reference`; change the rows below `src/aof/app/operations`, or
     `src/aof/adapters/cli/spec/verbs.py` for verbs that are not an operation. -->

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
    parts = [_HEAD, "## Options of every verb\n", *_options(GLOBAL), ""]
    for verb in sorted(VERBS, key=lambda one: one.name):
        parts += _one(verb)
    return "\n".join(parts).rstrip() + "\n"


def _one(verb: Verb) -> list[str]:
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


def _options(options: tuple[Option, ...]) -> list[str]:
    return ["| | |", "| --- | --- |", *(_row(option) for option in options)]


def _row(option: Option) -> str:
    repeated = "…" if option.kind == MANY else ""
    where = f"with {', '.join(f'`{one}`' for one in option.actions)}: " if option.actions else ""
    return f"| `{_cell((option.name + ' ' + option.metavar).strip())}{repeated}` | {where}{option.help} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
