"""From words to values: finds the verb, reads its options, and says what is wrong in a way that helps.

What a value is made of (standard input, JSON, files) is read after the whole call is known to make sense, so that
nobody is asked for input in vain. Must not know what a verb does.
"""

from __future__ import annotations

import sys

import msgspec

from aof import errors
from aof.support import nesting
from aof.surfaces.cli import aliases
from aof.surfaces.cli.grammar import FLAG, GLOBAL, MANY, Argument, Option, Verb
from aof.surfaces.cli.verbs import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


_OF_MANY = ("cancel", "archive", "retry", "edit")  # which `aof bulk` does with many tasks
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_WANTED = {"int": "a whole number", "seconds": "seconds or a time such as 90s, 5m or 2h"}


class UsageError(Exception):
    """The words make no call. `hint` shows one that would."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def chosen_action(verb: str, given: dict[str, Any], known: Iterable[str], hint: str, default: str = "") -> str:
    """The action of a verb that has several, taken out of its values; raises UsageError for one that it has not."""
    action = str(given.pop("action", None) or default)
    if action not in known:
        *first, last = known
        raise UsageError(f"'aof {verb}' knows {', '.join(first)} and {last}, not '{action}'", hint)
    return action


class Parsed:
    """A verb with its values, and the options that every verb has; `former` is the name that it was called by once."""

    __slots__ = ("former", "options", "values", "verb")

    def __init__(self, verb: Verb | None, values: dict[str, Any], options: dict[str, Any], former: str = "") -> None:
        self.former = former
        self.verb = verb
        self.values = values
        self.options = options


def find_verb(word: str) -> Verb:
    """A verb by its name, its alias or the name that it had."""
    for verb in VERBS:
        if word == verb.name or word in verb.aliases or word in verb.former:
            return verb

    meant = _folded(word)
    if meant != word or meant in aliases.VERBS:
        return find_verb(aliases.VERBS.get(meant, meant))
    instead = f"aof show {word}" if is_task(word) else aliases.INSTEAD.get(word)
    names = [name for verb in VERBS for name in (verb.name, *verb.aliases) if " " not in name]
    raise UsageError(f"there is no verb '{word}'", f"use: {instead}" if instead else _suggest(word, names))


def below(verb: Verb, word: str = "") -> list[Verb]:
    """The verbs of two words that begin with this one, or the only one that ends with `word`."""
    return [one for one in VERBS if one.name.startswith(f"{verb.name} ") and one.name.endswith(f" {word}".rstrip())]


def parse(words: list[str]) -> Parsed:
    """Read a whole command line."""
    options: dict[str, Any] = {}
    values: dict[str, Any] = {}
    places: list[str] = []
    verb: Verb | None = None
    former = ""
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            places += reversed(rest)
            break
        if verb is None and word in ("--version", "-V", "-v"):
            verb = find_verb("version")
        elif word.startswith("-") and word != "-":
            option, inline = _option(word, verb)
            into = options if option in GLOBAL else values
            _take(option, inline, rest, into, verb)
        elif verb is None:
            verb = find_verb(word)
            former = word if word in verb.former else ""
        elif not places and not values and (longer := below(verb, word)):
            verb = longer[0]
        else:
            places.append(word)
    if verb is not None and not options.get("help"):
        _place(verb, places, values)
    elif verb is not None and places:
        values["action"] = places[0]  # of which help is asked for
    return Parsed(verb, values, options, former)


def _option(word: str, verb: Verb | None) -> tuple[Option, str | None]:
    name, equals, inline = word.partition("=")
    name = "--help" if name == "-h" else name.replace("_", "-")
    known = _known(verb)
    option = known.get(name) or _meant(name, known)
    if option is not None:
        return option, inline if equals else None
    where = f"'aof {verb.name}'" if verb else "aof"
    if name == "--agent":
        hint = "the name of who calls is --actor NAME (else $AOF_ACTOR, else your user name)"
        raise UsageError(f"{where} has no option --agent", hint)
    if name.startswith("--"):
        raise UsageError(f"{where} has no option {name}", _suggest_option(name, known, verb))
    close = [full for full in known if full.startswith(f"-{name}")] if len(name) == len("-x") else []
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    else:
        import shlex

        hint = f"put -- before text that begins with a dash: -- {shlex.quote(word)}"
    raise UsageError(f"{where} has no option {name}", hint)


def _known(verb: Verb | None) -> dict[str, Option]:
    """All options by each of their spellings, those that stand for an argument too."""
    if verb is None:
        return {option.name: option for option in GLOBAL}
    placed = {
        name: Option(name, one.help, metavar="T", target=one.target, type=one.type)
        for one in verb.arguments
        for name in one.also
    }
    own = {name: option for option in verb.options for name in (option.name, *option.also)}
    return placed | own | {option.name: option for option in GLOBAL}


def _meant(name: str, known: dict[str, Option]) -> Option | None:
    """The option that another tool calls so, or the only one that begins so."""
    for other in aliases.OPTIONS.get(name, ()):
        if other in known:
            return known[other]
    begun = [full for full in known if name.startswith("--") and len(name) > len("--x") and full.startswith(name)]
    shortest = min(begun, key=len, default="")  # --summary among --summary and --summary-ref
    return known[shortest] if begun and all(full.startswith(shortest) for full in begun) else None


def _take(option: Option, inline: str | None, rest: list[str], into: dict[str, Any], verb: Verb | None) -> None:
    if option.kind == FLAG:
        if inline is not None:
            raise UsageError(f"{option.name} takes no value", f"write only {option.name}")
        into[option.target] = option.value
        return
    if inline is None and (not rest or rest[-1] in _known(verb)):
        raise UsageError(f"{option.name} needs a value", f"{option.name} {option.metavar}: {option.help}")
    text = inline if inline is not None else rest.pop()
    value = _typed(option, text)
    if option.kind == MANY:
        into.setdefault(option.target, []).append(value)
    elif option.target in into:
        raise UsageError(f"{option.name} was given twice", f"give it once; it was {into[option.target]!r} before")
    else:
        into[option.target] = value


def _typed(option: Option, text: str) -> Any:
    if option.words:  # people write in_progress and DONE
        return next((one for one in option.words if _folded(one) == _folded(text)), text)
    try:
        if option.type == "seconds":
            return _seconds(text)
        return int(text) if option.type == "int" else float(text) if option.type == "float" else text
    except ValueError:
        wanted = _WANTED.get(option.type, "a number")
        hint = f"{option.name} {option.metavar}: {option.help}"
        raise UsageError(f"{option.name} needs {wanted}, not {text[:40]!r}", hint) from None


def _folded(word: str) -> str:
    """A word without what people vary."""
    return word.strip().lower().replace("_", "-").replace(" ", "-")


def _seconds(text: str) -> float:
    """A number of seconds, or one with its unit: `90`, `90s`, `5m`, `2h`, `1d`."""
    unit = _UNITS.get(text[-1:])
    return float(text[:-1]) * unit if unit else float(text)


def _place(verb: Verb, places: list[str], values: dict[str, Any]) -> None:
    many = verb.arguments[-1] if verb.arguments and verb.arguments[-1].many else None
    if many is not None and (listed := places[len(verb.arguments) - 1 :]):
        values[many.target] = listed
        places = places[: len(verb.arguments) - 1]
    if places and verb.is_group:
        nearest = _nearest(places[0], [one.name.rpartition(" ")[2] for one in below(verb)])
        hint = f"did you mean 'aof {verb.name} {nearest}'?" if nearest else _see(verb)
        raise UsageError(f"there is no verb '{verb.name} {places[0]}'", hint)
    if len(places) > len(verb.arguments):
        extra = " ".join(places[len(verb.arguments) :])
        if any(option.name == "--reason" for option in verb.options) and not is_task(places[len(verb.arguments)]):
            import shlex

            call = f"aof {verb.name} {' '.join(places[: len(verb.arguments)])} --reason {shlex.quote(extra)}"
            raise UsageError(f"'aof {verb.name}' needs --reason before why", call)
        if verb.name in _OF_MANY:
            hint = f"for several tasks: aof bulk {verb.name} {' '.join(places)}"
            raise UsageError(f"'aof {verb.name}' changes one task, and not also: {extra}", hint)
        text = any(argument.name in ("TITLE", "FILE") or argument.also for argument in verb.arguments)
        advice = (
            "put quotes around text" if text else "it takes fewer words" if verb.arguments else "it takes options only"
        )
        raise UsageError(
            f"'aof {verb.name}' does not know what to do with: {extra}", f"{advice}, as in: {verb.example}"
        )
    arguments = _meant_places(verb, places)
    for argument, word in zip(arguments, places, strict=False):
        if argument.also and not argument.required and is_task(word):
            again = (
                f"one call for each task; where it is the text: aof {verb.name} {places[0]} {argument.also[0]} {word}"
            )
            raise UsageError(f"'aof {verb.name}' is about one task, and not also: {word}", again)
        if argument.also and argument.target in values:
            raise UsageError(
                f"{argument.also[0]} was given twice", f"once is enough: aof {verb.name} {' '.join(places)}"
            )
        values[argument.target] = word
    left = [argument for argument in arguments[len(places) :] if argument.target not in values]
    missing = [argument.name for argument in left if argument.required]
    if missing:
        raise UsageError(f"'aof {verb.name}' needs {' and '.join(missing)}", f"for example: {verb.example}")


def is_task(word: str) -> bool:
    """Whether a word where a text may stand is rather the ID of another task."""
    return word.isdigit() or word.upper().startswith("TASK-")


def _meant_places(verb: Verb, places: list[str]) -> tuple[Argument, ...]:
    """The arguments that the words stand for: one of a few words at the beginning may be left out."""
    first = verb.arguments[0] if verb.arguments else None
    may_be_left_out = first is not None and not first.required and "|" in first.name
    if first is None or not may_be_left_out or len(places) != len(verb.arguments) - 1:
        return verb.arguments
    return verb.arguments if places and places[0] in first.name.split("|") else verb.arguments[1:]


def _suggest_option(name: str, known: dict[str, Option], verb: Verb | None) -> str:
    """The nearest option, or the one that the nearest guess means."""
    meant = {full: full for full in known}
    meant |= {guess: full for guess, others in aliases.OPTIONS.items() for full in reversed(others) if full in known}
    nearest = _nearest(name.lstrip("-"), [full.lstrip("-") for full in meant])
    return f"did you mean '{meant['--' + nearest]}'?" if nearest else _see(verb)


def _suggest(word: str, known: list[str]) -> str:
    nearest = _nearest(word, known)
    return f"did you mean '{nearest}'?" if nearest else _see(None)


def _see(verb: Verb | None) -> str:
    return f"see 'aof {verb.name} --help'" if verb else "see 'aof --help'"


def _nearest(word: str, known: list[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, n=1, cutoff=0.65)), None)


_LARGEST = 64 * 1024 * 1024  # bytes of any other text: a thousand messages, or a long history
_MOST = 16 * 1024 * 1024  # bytes of a file of JSON: more than the core takes, less than the memory of a small machine


def resolved(verb: Verb, given: dict[str, Any]) -> dict[str, Any]:
    """The values by the names of the parameters. What must be there and was not given is empty: the core refuses it."""
    by_target: dict[str, Option | Argument] = {one.target: one for one in verb.arguments}
    by_target |= {option.target: option for option in verb.options}
    values = {
        name: _read(by_target[name], value) if name in by_target else value
        for name, value in given.items()
        if "." not in name
    }
    for name, value in given.items():
        whole, dot, key = name.partition(".")
        if dot:
            values[whole] = values.get(whole, {}) | {key: None if value == "" else value}  # an empty text takes it away
    for option in verb.options:
        if option.required and option.type == "text":
            values.setdefault(option.target, [] if option.kind == MANY else "")
    return values


def _read(option: Option | Argument, value: Any) -> Any:
    if option.type == "stdin" and value == "-":
        text = sys.stdin.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise _too_large("standard input")
        return text
    if isinstance(option, Argument):
        return value
    if option.type == "item":
        return [_decoded(option, text) if text.startswith("{") else text for text in value]
    if option.type == "object":
        merged: dict[str, Any] = {}
        for text in value:
            merged |= _object(option, text)
        return merged
    return value


def _object(option: Option, text: str) -> dict[str, Any]:
    """`KEY=JSON`, where what is not JSON is text; a JSON object; or `@FILE` with one."""
    if text.startswith("{"):
        return _decoded(option, text)
    name, equals, value = text.partition("=")
    if not equals and text.startswith("@"):
        return _decoded(option, _content(option, text[1:]))
    if not equals or not name:
        raise UsageError(f"{option.name} needs KEY=JSON, not {text[:80]!r}", f"for example: {option.name} key=1")
    try:
        return {name: nesting.decode_json(value, object)}
    except nesting.NestedTooDeeply as error:
        raise UsageError(f"{option.name} {name[:80]} is {error}", "keep deep structures in a file") from None
    except msgspec.DecodeError:
        return {name: value}


def _decoded(option: Option, text: str | bytes) -> dict[str, Any]:
    from typing import Any

    try:
        return nesting.decode_json(text, dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        example = f"""for example: {option.name} '{{"key": 1}}'"""
        raise UsageError(f"{option.name} needs a JSON object: {error}", example) from None


def _content(option: Option, path: str) -> bytes:
    try:
        content = _bounded(path, _MOST)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", f"name a file: {option.name} @FILE") from None
    if len(content) > _MOST:
        raise UsageError(f"{path} is larger than {_MOST} bytes", f"give less: {option.name} @FILE")
    return content


def file_text(path: str) -> str:
    """A file's text, or that of standard input; what is not UTF-8 stays recognisable as such."""
    try:
        content = _bounded(path, _LARGEST)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "name a file, or - for standard input") from None
    if len(content) > _LARGEST:
        raise _too_large("standard input" if path == "-" else path)
    return content.decode("utf-8", "surrogateescape")


def _too_large(what: str) -> errors.PayloadTooLarge:
    return errors.PayloadTooLarge(f"{what} is larger than {_LARGEST:,} bytes", "give it in parts", limit=_LARGEST)


def _bounded(path: str, most: int) -> bytes:
    """What a file has, up to one byte more than it may: one that never ends is not read to its end."""
    if path == "-":
        return sys.stdin.buffer.read(most + 1)
    with open(path, "rb") as file:
        return file.read(most + 1)
