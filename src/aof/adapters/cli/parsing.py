"""From words to values: finds the verb, reads its options, and says what is wrong in a way that helps."""

from __future__ import annotations

from aof.adapters.cli.grammar import FLAG, GLOBAL, MANY, Option, Verb
from aof.adapters.cli.vocabulary import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class UsageError(Exception):
    """The words make no call. `hint` shows one that would."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Parsed:
    """A verb with its values, and the options that every verb has."""

    __slots__ = ("options", "values", "verb")

    def __init__(self, verb: Verb | None, values: dict[str, Any], options: dict[str, Any]) -> None:
        self.verb = verb
        self.values = values
        self.options = options


def find_verb(word: str) -> Verb:
    """A verb by its name or alias."""
    for verb in VERBS:
        if word == verb.name or word in verb.aliases:
            return verb
    raise UsageError(
        f"there is no verb '{word}'", _suggest(word, [name for v in VERBS for name in (v.name, *v.aliases)])
    )


def parse(words: list[str]) -> Parsed:
    """Read a whole command line."""
    options: dict[str, Any] = {}
    values: dict[str, Any] = {}
    places: list[str] = []
    verb: Verb | None = None
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            places += reversed(rest)
            break
        if word.startswith("--") or word == "-h":
            option, inline = _option(word, verb)
            into = options if option in GLOBAL else values
            _take(option, inline, rest, into)
        elif verb is None:
            verb = find_verb(word)
        else:
            places.append(word)
    if verb is not None and not options.get("help"):
        _place(verb, places, values)
    return Parsed(verb, values, options)


def _option(word: str, verb: Verb | None) -> tuple[Option, str | None]:
    name, equals, inline = word.partition("=")
    name = "--help" if name == "-h" else name
    known = (*(verb.options if verb else ()), *GLOBAL)
    for option in known:
        if option.name == name:
            return option, inline if equals else None
    where = f"'aof {verb.name}'" if verb else "aof"
    raise UsageError(f"{where} has no option {name}", _suggest(name, [option.name for option in known], verb))


def _take(option: Option, inline: str | None, rest: list[str], into: dict[str, Any]) -> None:
    if option.kind == FLAG:
        if inline is not None:
            raise UsageError(f"{option.name} takes no value")
        into[option.target] = True
        return
    if inline is None and not rest:
        raise UsageError(f"{option.name} needs a value", f"{option.name} {option.metavar}: {option.help}")
    text = inline if inline is not None else rest.pop()
    value = _typed(option, text)
    if option.kind == MANY:
        into.setdefault(option.target, []).append(value)
    elif option.target in into:
        raise UsageError(f"{option.name} was given twice")
    else:
        into[option.target] = value


def _typed(option: Option, text: str) -> Any:
    try:
        return int(text) if option.type == "int" else float(text) if option.type == "float" else text
    except ValueError:
        raise UsageError(f"{option.name} needs a number, not {text!r}") from None


def _place(verb: Verb, places: list[str], values: dict[str, Any]) -> None:
    if len(places) > len(verb.arguments):
        extra = " ".join(places[len(verb.arguments) :])
        raise UsageError(
            f"'aof {verb.name}' does not know what to do with: {extra}",
            f"put quotes around text, as in: {verb.example}",
        )
    for argument, word in zip(verb.arguments, places, strict=False):
        values[argument.target] = word
    missing = [argument.name for argument in verb.arguments[len(places) :] if argument.required]
    if missing:
        raise UsageError(f"'aof {verb.name}' needs {' and '.join(missing)}", f"for example: {verb.example}")


def _suggest(word: str, known: list[str], verb: Verb | None = None) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"see 'aof {verb.name} --help'" if verb else "see 'aof --help'"
