"""What makes a function an operation: a decorator that keeps what is said of it, and does nothing else.

    @operation(effect="write", needs="lead", example="aof job pause nightly", family=_JOB)
    def job_pause(context: CallContext, job_id: JobName, *, actor: str | None = None) -> JobShown:
        ...

The function is the whole declaration. Its signature gives the parameters, on every surface: each is described by its
type (`Annotated[str, param("name of the job")]`), and one that may be None, or has a default, may be left out. Its
return type gives the answer, the first paragraph of its docstring the help. The rest follows in `aof.api.signatures`,
which nobody loads who only needs the function. Names in a signature are those of its module, or of `typing`, and of
`kinds`, `declarations` and `results` in `aof.kernel`: a module that uses these imports them for type checkers only.
The first parameter is the `context` of the call, or the `fabric`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypedDict, TypeVar, Unpack

    from msgspec import Struct as Said

    from aof.kernel.declarations import Effect, Scope, Tier
else:

    class Said:
        """Keeps what is said of an operation by keyword: a module of operations loads nothing for it."""

        def __init_subclass__(cls, **_how: object) -> None:
            pass

        def __init__(self, **said: object) -> None:
            self.__dict__.update(said)


class Extra(Said, frozen=True, kw_only=True):
    """An option of the command line that is not a parameter of the operation; with `key`, it sets a key of one.

    Without dashes, as `[FILE]`, it stands by its place.
    """

    option: str
    help: str
    metavar: str = ""
    type: str = "text"
    many: bool = False
    key: str = ""


class Spelling(Said, frozen=True, kw_only=True):
    """How a parameter is given on the command line, where its name and type do not say so.

    `place` makes it positional, under that name in the usage line; `[FILE]` may be left out, and `ID…` may be several.
    `option` is the name of the option (`--dep` for `depends_on`; `--no-review` gives the value false), `metavar` stands
    for its value. `note` is added to the description, `help` stands in its place. With `stdin`, `-` reads the text from
    standard input; with `seconds`, durations such as `5m` are taken as well. `target` is the name of the value where
    operations share a verb; `extra` are short ways to set keys of an object. `also` are other spellings of the
    option, or options that give the same as the place.
    """

    place: str = ""
    option: str = ""
    metavar: str = ""
    help: str = ""
    note: str = ""
    stdin: bool = False
    seconds: bool = False
    hidden: bool = False
    target: str = ""
    also: tuple[str, ...] = ()
    extra: tuple[Extra, ...] = ()


class Family(Said, frozen=True, kw_only=True):
    """A verb that several operations share; its first word says which of them is meant.

    `default` is the word that may be left out. `place` describes a second word that its operations take for different
    things. `section` and `order` are those of its operations that say nothing else.
    """

    verb: str
    help: str
    example: str
    choose: str = "what to do"
    default: str = ""
    place: str = ""
    aliases: tuple[str, ...] = ()
    section: str = ""
    order: int = 0


class StandIn(Said, frozen=True, kw_only=True):
    """An operation of the core that a hint shows to readers who are not told of this one.

    It `keeps` these parameters of the call and `adds` others.
    """

    operation: str
    keeps: tuple[str, ...] = ()
    adds: tuple[tuple[str, Any], ...] = ()


if TYPE_CHECKING:
    _Function = TypeVar("_Function", bound=Callable[..., Any])

    class Declaration(TypedDict, total=False):
        """What is said of an operation beside its signature; most of it are fields of `Operation` and `Cli`.

        `name` is that of the function, unless that is taken in its module. Parameters in `python_only` are for callers
        in Python; those in `always` may be left out there only. Schemas show the defaults of the parameters in
        `shows_defaults`. `over_wire` is what surfaces call in place of the function where they answer something else,
        which its return type says; it gets the fabric and the `values`, or has parameters of its own. `wire_types` say
        where the types are that parameters have over the wire, and the answer as `return`, where Python has another
        form of the same.
        """

        name: str
        effect: Effect
        tool: str
        verb: str
        tier: Tier
        worker: bool
        acts: str
        tool_shows: tuple[str, ...]
        tool_requires: tuple[str, ...]
        tool_defaults: tuple[tuple[str, object], ...]
        tool_caller: str
        tool_example: tuple[tuple[str, object], ...]
        over_wire: Callable[..., Any]
        wire_types: dict[str, str]
        answer: Callable[[], dict[str, Any]]
        needs: Scope
        needs_more: tuple[tuple[str, object, Scope], ...]
        about_caller: bool
        stand_in: StandIn
        section: str
        order: int
        example: str
        summary: str
        notes: str
        aliases: tuple[str, ...]
        former: tuple[str, ...]
        spelled: tuple[tuple[str, Spelling], ...]
        extra: tuple[Extra, ...]
        family: Family
        python_only: tuple[str, ...]
        always: tuple[str, ...]
        shows_defaults: tuple[str, ...]


def operation(**declared: Unpack[Declaration]) -> Callable[[_Function], _Function]:
    """Declare an operation: a method of the fabric that every surface has."""

    def declare(function: _Function) -> _Function:
        function.declared = declared  # type: ignore[attr-defined] # functions take attributes
        return function

    return declare


def method(function: _Function) -> _Function:
    """Declare a method of the fabric that only programs in Python have."""
    function.declared = None  # type: ignore[attr-defined] # as above
    return function
