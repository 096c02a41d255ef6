"""The scheduler's part in mail: what was not acknowledged in time is escalated, once.

Must not know how mail is kept.
"""

from __future__ import annotations

from aof.app.documents import reading
from aof.app.documents.mailbox import response_times
from aof.core.errors.base import AofError
from aof.core.scheduling.snapshot import Action
from aof.ports import store as ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment
    from aof.app.faults import Faults

_WHAT = "mail_escalate"


def escalations(here: Environment, faults: Faults, *, dry_run: bool) -> tuple[Action, ...]:
    """Escalate what is due; what cannot be escalated now is tried again with the next tick."""
    policy = reading.policy_of(here)
    done = []
    try:
        for late in response_times.due(here, policy):
            if dry_run or response_times.escalate(here, policy, late):
                reason = f"{late.message_id}: {late.agent} did not acknowledge it within the {late.tier} window"
                done.append(Action(action=_WHAT, task_id="", reason=reason, message_id=late.message_id))
    except (AofError, ports.ScopeTooNarrow) as error:  # the latter: somebody has deleted the lock meanwhile
        faults.note(_WHAT, "", error)
    return tuple(done)


def next_due(here: Environment) -> int | None:
    """When a message that names a time becomes due."""
    return response_times.next_due(here)
