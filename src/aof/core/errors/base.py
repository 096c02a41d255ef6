"""The root of all errors, the six kinds, and what any call may meet. Must not know any surface."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class Call(dict[str, "Any"]):
    """The call that would have worked: an operation and its arguments. An object in JSON for any encoder."""

    __slots__ = ()

    def __init__(self, operation: str, arguments: dict[str, Any]) -> None:
        super().__init__(operation=operation, arguments=arguments)

    @property
    def operation(self) -> str:
        """What to call."""
        name: str = self["operation"]
        return name

    @property
    def arguments(self) -> dict[str, Any]:
        """With what."""
        given: dict[str, Any] = self["arguments"]
        return given

    def __str__(self) -> str:
        """The call in Python."""
        given = dict(self.arguments)
        name = "held_back" if given.pop("explain", False) else "events" if self.operation == "log" else self.operation
        first = [repr(given.pop("task_id"))] if "task_id" in given and name != "events" else []
        return f"fabric.{name}({', '.join([*first, *(f'{one}={value!r}' for one, value in given.items())])})"


class AofError(Exception):
    """What every refusal and failure of AOF is. A hint may show another way on, `otherwise`: in words, and its call."""

    __module__ = "aof.errors"
    code: ClassVar[str] = "error"
    kind: ClassVar[str] = "internal"
    otherwise: tuple[str, Call] | None = None

    def __init__(self, message: str, hint: str = "", call: Call | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.call = call
        self.details = details

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("aof.core.errors."):
            cls.__module__ = "aof.errors"  # where everybody else finds it

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override] # what a traceback shows below the error
        ways = [(self.hint, self.call), *((self.otherwise,) if self.otherwise is not None else ())]
        told = [": ".join(filter(None, (hint, str(call or "")))) for hint, call in ways if hint or call is not None]
        notes: list[str] = self.__dict__.setdefault("_notes", told)  # others may add to it
        return notes


class NotFound(AofError):
    """What was asked for does not exist."""

    code = kind = "not_found"


class Conflict(AofError):
    """Another caller was first, or the caller's knowledge is out of date."""

    code = kind = "conflict"


class Refused(AofError):
    """The rules do not allow this now."""

    code = kind = "refused"


class Invalid(AofError):
    """The call itself is wrong."""

    code = kind = "invalid"


class InvalidInput(Invalid):
    """A value is missing, of the wrong type or not allowed."""

    code = "invalid"


class PayloadTooLarge(Invalid):
    """A value is longer than the limit for it."""

    code = "payload_too_large"


class Unavailable(AofError):
    """The machine cannot do it at the moment; nothing was changed."""

    code = kind = "unavailable"


class TooManyRequests(Unavailable):
    """The caller makes too many requests, or has too many open."""

    code = "too_many_requests"


class Internal(AofError):
    """The data needs a look by `doctor`."""

    code = kind = "internal"
