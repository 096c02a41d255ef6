"""How long a lease still lasts when the wall clock cannot be trusted. Must not know how any clock is read.

A heartbeat carries the machine's count since its start beside the wall clock. Under the same start that count decides
alone, so that turning the wall clock neither ends a lease nor prolongs one. After another start, or on another machine,
only the wall clock is left: a sign of life that lies further ahead than its whole lease was long is not believed.
"""

from __future__ import annotations

import msgspec

from aof.core.model.run import Heartbeat, Pulse
from aof.core.model.task import Lease
from aof.core.model.times import iso, millis


class Boot(msgspec.Struct, frozen=True):
    """Which start of which machine this is, and the milliseconds since: they never jump."""

    id: str
    at: int


def stamped(heartbeat: Heartbeat, before: Heartbeat | None, boot: Boot | None) -> Heartbeat:
    """The heartbeat as it is written: with the count since the machine's start, where there is one."""
    if boot is None:
        return heartbeat
    ends = boot.at + millis(heartbeat.expires_at) - millis(heartbeat.last_heartbeat)
    last = before.pulse if before is not None and before.run_id == heartbeat.run_id else None
    if last is None or last.boot_id != boot.id:
        return msgspec.structs.replace(heartbeat, pulse=Pulse(boot_id=boot.id, began=boot.at, at=boot.at, ends=ends))
    pulse = Pulse(boot_id=boot.id, began=last.began, at=boot.at, ends=max(last.ends, ends))
    return msgspec.structs.replace(heartbeat, pulse=pulse)


def present(heartbeat: Heartbeat | None, now: int, boot: Boot | None) -> Heartbeat | None:
    """The heartbeat as it is read: its end said by the wall clock of now, whatever that did in the meantime."""
    if heartbeat is None or heartbeat.pulse is None:
        return heartbeat
    pulse = heartbeat.pulse
    if boot is not None and pulse.boot_id == boot.id:
        return msgspec.structs.replace(heartbeat, expires_at=iso(now + pulse.ends - boot.at))
    lasts = pulse.ends - pulse.at
    last = millis(heartbeat.last_heartbeat)
    end = last + lasts if last - now <= lasts else now
    return msgspec.structs.replace(heartbeat, expires_at=iso(end))


def running_for(lease: Lease, heartbeat: Heartbeat | None, now: int, boot: Boot | None) -> int:
    """How many milliseconds the run has lasted."""
    pulse = heartbeat.pulse if heartbeat is not None and heartbeat.run_id == lease.run_id else None
    if pulse is not None and boot is not None and pulse.boot_id == boot.id:
        return max(boot.at - pulse.began, 0)
    return max(now - millis(lease.acquired_at), 0)
