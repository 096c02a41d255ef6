"""What the server does beside answering: ends the requests of revoked tokens, and reports what was refused.

Must not know any single request.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread

from aof.adapters.http.limits.grants import Grants
from aof.adapters.http.limits.traffic import Traffic, TrafficReport
from aof.app.fabric import Fabric
from aof.app.operations.call import Caller
from aof.core.errors.base import AofError

Tell = Callable[[str, str], None]
EndSessions = Callable[[Callable[[Caller], bool]], Awaitable[None]]
_TROUBLE = 5.0  # seconds of silence after a fault of ours
_log = logging.getLogger(__name__)


def log_it(action: str, text: str) -> None:
    """For a server without a service that reports events."""
    _log.warning("%s: %s", action, text)


async def watch(
    fabric: Fabric, traffic: Traffic, grants: Grants, *, enders: tuple[EndSessions, ...], tell: Tell, pause: float
) -> None:
    """Look again and again until cancelled; what fails once is tried again."""
    trouble = ""
    while True:
        await anyio.sleep(pause)
        try:
            grants.end_revoked()
            trouble = ""
            for end_sessions in enders:
                await end_sessions(grants.is_gone)
            for report in traffic.due(anyio.current_time()):
                tell(report.action, report.text)
                if report.action == "auth":
                    await _record(fabric, report)
        except AofError as error:  # tokens.json cannot be used: every request is told so, and the log once
            if error.message != trouble:
                trouble = error.message
                tell("tokens", f"{error.message}; {error.hint}")
        except Exception:  # noqa: BLE001 - what fails here must end neither this loop nor the server around it
            _log.exception("looking after the server failed")
            await anyio.sleep(_TROUBLE)


async def _record(fabric: Fabric, report: TrafficReport) -> None:
    """One event per minute at most, however many there were."""
    payload = {"count": report.total, "addresses": report.addresses}
    try:
        await anyio.to_thread.run_sync(fabric.remark, "http.authentication.failed", payload)
    except AofError as error:
        _log.warning("failed authentications are not in the log: %s", error.message)
