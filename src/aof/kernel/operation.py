"""What makes a function an operation: a decorator that keeps what is said of it, and does nothing else.

    @operation(effect="write", needs="lead", example="aof job pause nightly", family=_JOB)
    def job_pause(context: CallContext, job_id: JobName, *, actor: str | None = None) -> JobShown:
        ...

The function is the whole declaration. Its signature gives the parameters, on every surface: each is described by its
type (`Annotated[str, param("name of the job")]`), and one that may be None, or has a default, may be left out. Its
return type gives the answer, the first paragraph of its docstring the help. The rest follows in `aof.api.signatures`,
which nobody loads who only needs the function. Names in a signature are those of its module, or of
`aof.kernel.declarations`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypedDict, TypeVar, Unpack

    from aof.kernel.declarations import Effect, Extra, Family, Scope, Spelling, StandIn, Tier

    _Function = TypeVar("_Function", bound=Callable[..., Any])

    class Declaration(TypedDict, total=False):
        """What is said of an operation beside its signature; most of it are fields of `Operation` and `Cli`.

        `name` is that of the function, unless that is taken in its module. Parameters in `python_only` are for callers
        in Python; those in `always` may be left out there only. Schemas show the defaults of the parameters in
        `shows_defaults`. `over_wire` is what surfaces call in place of the function where they answer something else,
        which its return type says; it gets the fabric and the `values`, or has parameters of its own.
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
        tool_example: tuple[tuple[str, object], ...]
        over_wire: Callable[..., Any]
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
