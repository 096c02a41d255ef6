"""All checks of a command's caller, in order: is its name proven, is it listed, may it pass the gate.

Asked of commands that a caller gave, and not of what AOF does by itself. Must not know the rules themselves.
"""

from __future__ import annotations

from aof.core.errors.base import AofError
from aof.core.model import commands as c
from aof.core.model.records import Records
from aof.core.org.gates import beyond_work, gate_refusal, unproven_gate
from aof.core.org.impersonation import delivered_by, impersonation
from aof.core.org.membership import unlisted


def refused(records: Records, command: c.OnTask) -> AofError | None:
    """Why the caller may not give the command; None when nothing about the caller forbids it."""
    policy = records.policy
    task = None if isinstance(command, c.Create) else records.look(command.task_id)
    if policy.binds and command.outside:
        named = unlisted(policy, command.session, delivered_by(command), command.actor, command.agent)
        if refusal := impersonation(policy, task, command) or named:
            return refusal
    if task is None or isinstance(command, c.OwnRule):
        return None
    if command.limited and (refusal := beyond_work(task, command)):
        return refusal
    proven = unproven_gate(records, task, command) if policy.require_secret else None
    return proven or gate_refusal(records, task, command)
