"""Writes the table of the operations' verbs from the catalogue: `python -m aof.surfaces.cli.generate`.

The table is committed, because reading the catalogue takes longer than most calls of the command line; a test compares
the two. Only developers run this. Must not know any single parameter.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from inspect import get_annotations
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from aof.api.catalogue import OPERATIONS
from aof.kernel.declarations import Cli, Operation
from aof.kernel.operation import Extra, Spelling
from aof.surfaces.cli.grammar import FLAG, MANY, ONE, SECTIONS, Argument, Option, Verb, VerbAction

_WIDTH = 108  # of what several names fill
FILE = Path(__file__).with_name("operations.py")
# Verbs whose answer needs more than the operation's result; every other one passes its values on and prints the usual.
HANDLERS = {
    "admin recover": "data:recover",
    "admin replay": "views:replay",
    "admin snapshot": "data:snapshot",
    "agents": "operation:agents",
    "audit": "handoffs:audit",
    "blocked": "queries:blocked",
    "bulk": "operation:bulk",
    "charter": "messages:charter",
    "claim": "operation:claim",
    "conflict": "messages:conflict",
    "context": "workflows:context",
    "dep": "operation:dep",
    "doctor": "data:doctor",
    "export": "interchange:export_any",
    "graph": "views:graph",
    "handoff": "handoffs:handoff",
    "import": "interchange:import_any",
    "inbox": "queries:inbox",
    "job": "workflows:job",
    "list": "queries:list_tasks",
    "log": "data:log",
    "mail": "messages:mail",
    "org": "agents:org",
    "preflight": "workflows:preflight",
    "prime": "agents:prime",
    "ready": "queries:ready",
    "search": "queries:search",
    "send": "messages:send",
    "session-end": "messages:session_end",
    "show": "queries:show",
    "status": "queries:status",
    "sync": "data:sync",
    "workflow": "workflows:workflow",
    "worklog": "messages:worklog",
}
_HEAD = '''"""The verbs of all operations, as data.

Generated from the operations of all subjects. Do not edit; run: python -m aof.surfaces.cli.generate
"""

# fmt: off
# ruff: noqa: E501

from __future__ import annotations

from aof.surfaces.cli.grammar import Argument, Option, Verb, VerbAction
'''


def generated() -> str:
    """The whole file; what several verbs have alike is made once."""
    words = {one.name: one.verb for one in OPERATIONS if one.verb != one.name}
    names = {one.name: renamed for one in OPERATIONS if (renamed := _renamed(one))}
    found = verbs()
    shared = _shared([_option(one) for verb in found for one in verb.options])
    lines = [_HEAD, "# Options that several verbs have.", *(f"{name} = {text}" for text, name in shared.items()), ""]
    lines += ["VERBS: tuple[Verb, ...] = (", *(line for verb in found for line in _written(verb, shared)), ")", ""]
    lines += ["# What an operation is called on the command line, where that is not its name.", "WORDS = {"]
    lines += [*(f"    {_text(name)}: {_text(verb)}," for name, verb in sorted(words.items())), "}", ""]
    lines += ["# Parameters whose values have another name there.", "NAMES = {"]
    lines += [*(f"    {_text(name)}: {json.dumps(renamed)}," for name, renamed in sorted(names.items())), "}"]
    return "\n".join(lines) + "\n"


def _shared(texts: list[str]) -> dict[str, str]:
    """A name for each text that is there more than once; a number tells options of the same name apart."""
    named: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for text, count in Counter(texts).items():
        if count > 1:
            word = text.split('"')[1].lstrip("-").replace("-", "_").upper()
            taken[word] += 1
            named[text] = f"_{word}_{taken[word]}" if taken[word] > 1 else f"_{word}"
    return named


def verbs() -> list[Verb]:
    """The verbs in the order of `aof help --all`, each with all of its operations."""
    by_verb: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        if operation.cli is not None:
            family = operation.cli.family
            by_verb.setdefault(family.verb if family is not None else operation.verb, []).append(operation)
    found = [verb_of(name, members) for name, members in by_verb.items()]
    return sorted(found, key=lambda verb: (SECTIONS.index(verb.section), verb.order))


def verb_of(name: str, members: list[Operation]) -> Verb:
    """The verb of one operation, or of several that share it."""
    first = _cli(members[0])
    summary = first.summary or _phrase(members[0].help)
    arguments, options = _arguments(members[0]), _options(members[0])
    described: Any = first
    if first.family is not None:
        described, summary = first.family, first.family.help
        arguments, options = _shared_arguments(members), _shared_options(members)
    handler = HANDLERS.get(name, "")
    return Verb(
        name,
        summary,
        handler,
        section=first.section,
        order=first.order,
        operation="" if handler else members[0].name,
        arguments=tuple(arguments),
        options=tuple(options),
        example=described.example,
        help=first.notes,
        aliases=described.aliases,
        former=first.former,
        actions=tuple(map(_action_of, members)) if first.family is not None else (),
    )


def _action_of(operation: Operation) -> VerbAction:
    """One operation of several that share a verb; its usage has what cannot be left out."""
    placed = [(one.spelling.place.strip("[]"), one.required) for one in spelled(operation) if one.spelling.place]
    places = [name if required else f"[{name}]" for name, required in placed]
    options = _options(operation)
    needed = [f"{one.name} {one.metavar}" for one in options if one.required]
    rest = ["[OPTIONS]"] if len(needed) < len(options) else []
    usage = " ".join([f"aof {operation.verb}", *places, *needed, *rest])
    cli = _cli(operation)
    return VerbAction(operation.verb.split()[1], cli.summary or _phrase(operation.help), usage, cli.example)


def _cli(operation: Operation) -> Cli:
    assert operation.cli is not None
    return operation.cli


def _phrase(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].removesuffix(".")


class Parameter(msgspec.Struct, frozen=True):
    """A parameter as the row declares it."""

    name: str
    kind: Any
    description: str
    spelling: Spelling
    required: bool
    words: tuple[str, ...] = ()


def spelled(operation: Operation) -> list[Parameter]:
    """The parameters that the command line has, in the order of the struct."""
    overrides = dict(_cli(operation).spelled)
    hints = get_type_hints(operation.parameters, include_extras=True)
    found = []
    for field in msgspec.structs.fields(operation.parameters):
        kind, description, spelling, words = _unwrapped(hints[field.name])
        chosen = overrides.get(field.name, spelling)
        if not chosen.hidden:
            found.append(Parameter(field.name, kind, description, chosen, field.required, words))
    return found


def _unwrapped(hint: Any) -> tuple[Any, str, Spelling, tuple[str, ...]]:
    """A type without what only says how it is written; its meaning, its spelling, and the words that it takes."""
    kind, description, spelling, words = hint, "", Spelling(), tuple[str, ...]()
    while True:
        if get_origin(kind) is Annotated:
            kind, *metas = get_args(kind)
            for meta in (one for one in metas if isinstance(one, msgspec.Meta)):
                description = meta.description or description
                spelling = (meta.extra or {}).get("cli", spelling)
                words = tuple((meta.extra_json_schema or {}).get("enum", words))
        elif get_origin(kind) in (Union, UnionType):
            kinds = [one for one in get_args(kind) if one is not msgspec.UnsetType]
            kind = str if str in kinds else kinds[0]  # what may be a text is read as one
        else:
            return kind, description, spelling, words or _words(kind)


def _arguments(operation: Operation) -> list[Argument]:
    found = []
    for one in (one for one in spelled(operation) if one.spelling.place):
        place = one.spelling.place
        required = one.required and not place.startswith("[")
        read = "stdin" if one.spelling.stdin else "text"
        many = place.strip("[]").endswith("…")
        target = one.spelling.target or one.name
        also = one.spelling.also
        name = place.strip("[]")
        found.append(Argument(name, _help(one), required=required, target=target, type=read, many=many, also=also))
    placed = [one for one in _cli(operation).extra if not one.option.startswith("--")]
    return [*found, *(Argument(one.option.strip("[]"), one.help, required=one.option[0] != "[") for one in placed)]


def _options(operation: Operation) -> list[Option]:
    """Those of the operation itself come before those that it shares with others."""
    known = {one.name: one for one in spelled(operation) if not one.spelling.place}
    own = [name for kind in operation.parameters.__mro__ for name in get_annotations(kind)]
    ordered = [known[name] for name in own if name in known]
    options = [option for one in ordered for option in _options_of(one)]
    return [*options, *(_extra(one) for one in _cli(operation).extra if one.option.startswith("--"))]


def _options_of(one: Parameter, inside: str = "") -> Iterator[Option]:
    if isinstance(one.kind, type) and issubclass(one.kind, msgspec.Struct):
        for name, hint in get_type_hints(one.kind, include_extras=True).items():
            kind, description, spelling, words = _unwrapped(hint)
            part = Parameter(name, kind, description, spelling, required=False, words=words)
            yield from _options_of(part, f"{one.name}.")
        return
    spelling = one.spelling
    name = spelling.option or f"--{one.name.replace('_', '-')}"
    kind, read = _form(one.kind, spelling)
    metavar = "" if kind == FLAG else spelling.metavar or ("N" if read in ("int", "float") else name[2].upper())
    yield Option(
        name,
        _help(one),
        metavar=metavar,
        kind=kind,
        type=read,
        target=inside + (spelling.target or one.name),
        value=not name.startswith("--no-"),
        required=one.required,
        also=spelling.also,
        words=one.words,
    )
    for extra in spelling.extra:
        yield _extra(extra, f"{inside}{one.name}.")


def _form(kind: Any, spelling: Spelling) -> tuple[str, str]:
    """Whether it is a flag, one value or many, and how a value is read."""
    if kind is bool:
        return FLAG, "text"
    if kind in (int, float):
        return ONE, "seconds" if spelling.seconds else kind.__name__
    if get_origin(kind) in (list, Sequence):
        return MANY, "text" if get_args(kind)[0] is str else "item"
    if get_origin(kind) is dict:
        return MANY, "object"
    return ONE, "stdin" if spelling.stdin else "text"


def _words(kind: Any) -> tuple[str, ...]:
    """The words of a closed set, or of a list of such words; none where any text will do."""
    each = get_args(kind)[0] if get_origin(kind) in (list, Sequence) else kind
    return get_args(each) if get_origin(each) is Literal else ()


def _extra(extra: Extra, inside: str = "") -> Option:
    target = inside + (extra.key or extra.option.lstrip("-").replace("-", "_"))
    kind = MANY if extra.many else ONE if extra.metavar else FLAG
    text = extra.help + ("; may be repeated" if extra.many else "")
    return Option(extra.option, text, metavar=extra.metavar, kind=kind, type=extra.type, target=target)


def _help(one: Parameter) -> str:
    """The description, and what the form of the option adds to it."""
    if one.spelling.help:
        return one.spelling.help
    parts = [one.description] if one.description else []
    if words := _words(one.kind):
        *others, last = words
        parts.append(f"{', '.join(others)} or {last}")
    said = ": ".join(parts)
    kind, read = _form(one.kind, one.spelling)
    said += ", or - for standard input" if read == "stdin" else ""
    said += ", or a time such as 10m" if read == "seconds" else ""
    said += "; a JSON object or @FILE works too" if read == "object" else ""
    said += "; may be repeated" if kind == MANY and not one.spelling.place else ""
    return f"{said} {one.spelling.note}".rstrip()


def _shared_arguments(members: list[Operation]) -> list[Argument]:
    """The word that says which operation is meant, and then what stands in the same place in any of them."""
    family = _cli(members[0]).family
    assert family is not None
    actions = [operation.verb.split()[1] for operation in members]
    found = [Argument("|".join(actions), family.choose, required=not family.default, target="action")]
    taken = {action: _arguments(operation) for action, operation in zip(actions, members, strict=True)}
    for place in range(max(map(len, taken.values()))):
        here = {action: arguments[place] for action, arguments in taken.items() if place < len(arguments)}
        one = next(iter(here.values()))
        text = family.place or (one.help if len(here) == len(actions) else f"with {' or '.join(here)}: {one.help}")
        required = len(here) == len(actions) and all(argument.required for argument in here.values())
        found.append(Argument(one.name, text, required=required, target=one.target, type=one.type, also=one.also))
    return found


def _shared_options(members: list[Operation]) -> list[Option]:
    actions = [operation.verb.split()[1] for operation in members]
    by_name: dict[str, tuple[Option, list[str]]] = {}
    for action, operation in zip(actions, members, strict=True):
        for option in _options(operation):
            by_name.setdefault(option.name, (option, []))[1].append(action)
            by_name[option.name][0].words = tuple(dict.fromkeys((*by_name[option.name][0].words, *option.words)))
    for option, having in by_name.values():
        option.actions = tuple(having) if len(having) < len(actions) else ()
        option.required = option.required and len(having) == len(actions)
    return [option for option, _ in by_name.values()]


def _renamed(operation: Operation) -> dict[str, str]:
    """Parameters that share a place with one of another name, such as the task of `workflow attach`."""
    if operation.cli is None or operation.cli.family is None:
        return {}
    return {one.name: one.spelling.target for one in spelled(operation) if one.spelling.target}


def _written(verb: Verb, shared: dict[str, str]) -> Iterator[str]:
    """A verb, with one line for each option that only it has."""
    handler = _text(verb.handler) if verb.handler else f"operation={_text(verb.operation)}"
    begin = [_text(verb.name), _text(verb.summary), handler, f"section={_text(verb.section)}", f"order={verb.order}"]
    yield f"    Verb({', '.join(begin)},"
    parts = {"arguments": map(_argument, verb.arguments), "options": map(_option, verb.options)}
    for name, written in (parts | {"actions": map(_action, verb.actions)}).items():
        items = list(written)
        lines = list(_lines(items, shared))
        if len(lines) == 1:
            yield f"        {name}=({lines[0]}{',' if len(items) == 1 else ''}),"
        elif lines:
            yield f"        {name}=("
            yield from (f"            {line}," for line in lines)
            yield "        ),"
    more = [f"example={_text(verb.example)}"]
    more += [f"{name}={_texts(texts)}" for name, texts in (("aliases", verb.aliases), ("former", verb.former)) if texts]
    if verb.help:
        yield f"        help={_text(verb.help)},"
    yield f"        {', '.join(more)}),"


def _lines(items: Iterable[str], shared: dict[str, str]) -> Iterator[str]:
    """Each item in a line of its own; those that have a name, one behind the other."""
    for named, group in groupby(items, key=lambda item: item in shared):
        together = list(group)
        if named:
            yield from (line.rstrip(",") for line in wrap(", ".join(shared[item] for item in together), _WIDTH))
        else:
            yield from together


def _argument(argument: Argument) -> str:
    more = ("" if argument.required else ", required=False") + (", many=True" if argument.many else "")
    read = "" if argument.type == "text" else f", type={_text(argument.type)}"
    also = f", also={_texts(argument.also)}" if argument.also else ""
    return (
        f"Argument({_text(argument.name)}, {_text(argument.help)}{more}, target={_text(argument.target)}{read}{also})"
    )


def _action(one: VerbAction) -> str:
    return f"VerbAction({', '.join(map(_text, (one.name, one.summary, one.usage, one.example)))})"


def _option(option: Option) -> str:
    bare = Option(option.name, option.help, metavar=option.metavar)
    parts = [_text(option.name), _text(option.help)]
    parts += [f"metavar={_text(option.metavar)}"] if option.metavar else []
    for name in ("kind", "type", "target", "value", "required"):
        value = getattr(option, name)
        if value != getattr(bare, name):
            parts.append(f"{name}={value if isinstance(value, bool) else _text(value)}")
    parts += [f"actions={_texts(option.actions)}"] if option.actions else []
    parts += [f"also={_texts(option.also)}"] if option.also else []
    parts += [f"words={_texts(option.words)}"] if option.words else []
    return f"Option({', '.join(parts)})"


def _texts(texts: tuple[str, ...]) -> str:
    return f"({', '.join(map(_text, texts))}{',' if len(texts) == 1 else ''})"


def _text(text: str) -> str:
    return repr(text) if '"' in text else json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    FILE.write_text(generated(), encoding="utf-8")
    sys.stdout.write(f"{FILE}\n")
