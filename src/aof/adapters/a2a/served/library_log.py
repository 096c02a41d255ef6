"""What the protocol's library logs of a request: a refusal is an answer, and no news; a fault is recorded as one.

Without this, every wrong request of a peer would put a traceback into the service's output. Must not know requests.
"""

from __future__ import annotations

import logging
from typing import Final

from a2a.utils.errors import A2AError

from aof.app.faults import record

_PARSING: Final = "Failed to "  # how the library begins what it says of a request that it cannot read


class FaultHandler(logging.Handler):
    """Records the errors that nobody foresaw, and drops the rest."""

    def emit(self, told: logging.LogRecord) -> None:
        """Look at one line of the library."""
        error = told.exc_info[1] if told.exc_info else None
        refused = isinstance(error, (A2AError, RecursionError, UnicodeError)) or str(told.msg).startswith(_PARSING)
        if isinstance(error, Exception) and not refused:
            record("an A2A request", error)


def listen() -> None:
    """Take over what the library logs in this process; once is enough."""
    log = logging.getLogger("a2a")
    if not any(isinstance(one, FaultHandler) for one in log.handlers):
        log.addHandler(FaultHandler())
        log.propagate = False
