"""How a refusal of ours looks to a peer. The one place where a kind of error becomes one of the protocol's."""

from __future__ import annotations

from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from aof.app.faults import record
from aof.core.errors.base import AofError

_BY_KIND: dict[str, type[A2AError]] = {
    "invalid": InvalidParamsError,
    "not_found": TaskNotFoundError,
    "conflict": InvalidRequestError,
    "refused": UnsupportedOperationError,
    "internal": InternalError,
    "unavailable": InternalError,
}


def internal_error(error: Exception) -> A2AError:
    """An unexpected error: it is recorded here, and the peer gets only the reference."""
    return InternalError(f"an internal error, recorded as {record('an A2A request', error)}")


def peer_error(error: AofError) -> A2AError:
    """The same refusal in the protocol's words, with our code and hint beside them."""
    return _BY_KIND[error.kind](f"{error.message}; {error.hint}", {"code": error.code})
