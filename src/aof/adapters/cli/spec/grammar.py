"""What the command line can say, as data: verbs, their arguments and options.

Help, completion, suggestions and the reference come from these tables. Plain classes, because every call pays for
what is imported here. Must not know what a verb does.
"""

from __future__ import annotations

SCHEMA_VERSION = 1  # of every answer as JSON
FLAG, ONE, MANY = "flag", "one", "many"


class Option:
    """`--name VALUE`, a flag, or an option that may be repeated."""

    __slots__ = ("help", "kind", "metavar", "name", "target", "type")

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - what it is called everywhere
        *,
        metavar: str = "",
        kind: str = "",
        type: str = "text",  # noqa: A002 - what it is called everywhere
        target: str = "",
    ) -> None:
        self.name = name
        self.help = help
        self.metavar = metavar
        self.kind = kind or (ONE if metavar else FLAG)
        self.type = type
        self.target = target or name.lstrip("-").replace("-", "_")


class Argument:
    """A word that stands by its place."""

    __slots__ = ("help", "name", "required", "target")

    def __init__(self, name: str, help: str, *, required: bool = True, target: str = "") -> None:  # noqa: A002 - as above
        self.name = name
        self.help = help
        self.required = required
        self.target = target or name.lower().replace(" ", "_")


class Verb:
    """One thing that can be asked: `handler` is `module:function` below `verbs`, loaded when it is needed."""

    __slots__ = ("aliases", "arguments", "example", "handler", "help", "name", "options", "summary")

    def __init__(
        self,
        name: str,
        summary: str,
        handler: str,
        *,
        arguments: tuple[Argument, ...] = (),
        options: tuple[Option, ...] = (),
        example: str,
        help: str = "",  # noqa: A002 - as above
        aliases: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.summary = summary
        self.handler = handler
        self.arguments = arguments
        self.options = options
        self.example = example
        self.help = help
        self.aliases = aliases

    @property
    def usage(self) -> str:
        """The verb's one-line form."""
        words = [f"aof {self.name}"]
        words += [argument.name if argument.required else f"[{argument.name}]" for argument in self.arguments]
        words += [
            f"[{option.name}{' ' + option.metavar if option.metavar else ''}]{'…' if option.kind == MANY else ''}"
            for option in self.options
        ]
        return " ".join(words)


GLOBAL = (
    Option("--data-dir", "the data directory (else $AOF_DATA_DIR, else the nearest .aof/)", metavar="DIR"),
    Option("--actor", "who calls (else $AOF_ACTOR, else the user)", metavar="NAME"),
    Option("--json", "answer as JSON, errors too"),
    Option("--compact", "say it in few words, for readers that pay for each"),
    Option("--help", "show this"),
)
