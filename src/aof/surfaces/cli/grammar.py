"""What the command line can say, as data: verbs, their arguments and options.

Help, completion, suggestions and the reference come from these tables. Plain classes, because every call pays for
what is imported here. Must not know what a verb does.
"""

from __future__ import annotations

SCHEMA_VERSION = 1  # of every answer as JSON
FLAG, ONE, MANY = "flag", "one", "many"
SECTIONS = ("see", "work", "plan", "review", "team", "serve", "data")  # of `aof help --all`
_READ_LATER = ("stdin", "item", "object")  # types whose values are made of the texts when the call is carried out


class Option:
    """`--name VALUE`, a flag that gives `value`, or an option that may be repeated.

    `target` names the value; `routing.agent` is a key of the object `routing`. `type` says how the text is read: see
    `values`. A `required` one stands for a parameter that the operation must have: left out, it is passed on empty.
    `actions` are those of the verb that have it; none where all do. `also` are other spellings of it. `words` are those
    that it takes, where it takes only these.
    """

    __slots__ = ("actions", "also", "help", "kind", "metavar", "name", "required", "target", "type", "value", "words")

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - what it is called everywhere
        *,
        metavar: str = "",
        kind: str = "",
        type: str = "text",  # noqa: A002 - what it is called everywhere
        target: str = "",
        value: bool = True,
        required: bool = False,
        actions: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        words: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.help = help
        self.words = words
        self.actions = actions
        self.also = also
        self.value = value
        self.required = required
        self.metavar = metavar
        self.kind = kind or (ONE if metavar else FLAG)
        self.type = type
        self.target = target or name.lstrip("-").replace("-", "_")


class Argument:
    """A word that stands by its place; the last one of a verb may stand for `many`.

    Of the type `stdin`, `-` stands for what standard input has. `also` are options that give the same value.
    """

    __slots__ = ("also", "help", "many", "name", "required", "target", "type")

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - as above
        *,
        required: bool = True,
        target: str = "",
        type: str = "text",  # noqa: A002 - as above
        many: bool = False,
        also: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.help = help
        self.required = required
        self.target = target or name.lower().replace(" ", "_")
        self.type = type
        self.many = many
        self.also = also


class VerbAction:
    """What a verb of several operations is asked to do by its first word, with what that needs at least."""

    __slots__ = ("example", "name", "summary", "usage")

    def __init__(self, name: str, summary: str, usage: str, example: str) -> None:
        self.name = name
        self.summary = summary
        self.usage = usage
        self.example = example


class Verb:
    """One thing that can be asked, listed by `aof help --all` in `section`, by `order`.

    `handler` is `module:function` below `commands`, loaded when it is needed. A verb without one is the operation that
    it names: its values are passed on, and the usual answer is printed. A name may have two words, as `admin verify`:
    then help on the first one lists it, and a first one that does nothing itself has neither handler nor operation.
    `former` are names that it had; they still work, with a note.
    """

    __slots__ = (
        "actions",
        "aliases",
        "arguments",
        "example",
        "former",
        "handler",
        "help",
        "name",
        "operation",
        "options",
        "order",
        "section",
        "summary",
    )

    def __init__(
        self,
        name: str,
        summary: str,
        handler: str = "",
        *,
        section: str,
        order: int,
        operation: str = "",
        arguments: tuple[Argument, ...] = (),
        options: tuple[Option, ...] = (),
        example: str,
        help: str = "",  # noqa: A002 - as above
        aliases: tuple[str, ...] = (),
        former: tuple[str, ...] = (),
        actions: tuple[VerbAction, ...] = (),
    ) -> None:
        self.name = name
        self.summary = summary
        self.handler = handler
        self.section = section
        self.order = order
        self.operation = operation
        self.arguments = arguments
        self.options = options
        self.example = example
        self.help = help
        self.aliases = aliases
        self.former = former
        self.actions = actions

    @property
    def is_group(self) -> bool:
        """Whether it only leads to verbs of two words."""
        return not self.handler and not self.operation

    @property
    def reads(self) -> bool:
        """Whether some of its texts are not yet the values that its function takes."""
        later = any(one.type in _READ_LATER or one.required or "." in one.target for one in self.options)
        return later or any(one.type in _READ_LATER for one in self.arguments)

    @property
    def usage(self) -> str:
        """The verb's one-line form; of one with actions, theirs say the rest."""
        if self.actions:
            first, *others = self.arguments
            words = ["ACTION" if first.required else "[ACTION]", *(f"[{one.name}]" for one in others)]
            return f"aof {self.name} {' '.join(words)} [OPTIONS]"
        words = [f"aof {self.name}", *(["VERB"] if self.is_group else [])]
        words += [argument.name if argument.required else f"[{argument.name}]" for argument in self.arguments]
        options = sorted(self.options, key=lambda option: not option.required)
        return " ".join([*words, *map(_as_used, options)])


def _as_used(option: Option) -> str:
    """An option in a usage line: in brackets unless it is required."""
    word = f"{option.name} {option.metavar}".rstrip()
    return f"{word if option.required else f'[{word}]'}{'…' if option.kind == MANY else ''}"


GLOBAL = (
    Option("--data-dir", "the data directory (else $AOF_DATA_DIR, else the nearest .aof/)", metavar="DIR"),
    Option("--actor", "name of the caller (else $AOF_ACTOR, else the user)", metavar="NAME"),
    Option("--json", "answer as JSON, errors too"),
    Option("--compact", "short output, for agents that pay per token"),
    Option("--help", "show this"),
)
