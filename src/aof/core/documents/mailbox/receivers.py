"""Whom a message is for: one agent, or everybody who is meant by `all`, `maintainer` or a role.

Must not know how a message is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aof.core.documents.mailbox.lifecycle import MailStanding
from aof.core.documents.mailbox.message import MailMessage
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.model.policy import Policy
from aof.core.validation import limits
from aof.core.validation.findings import suggestion

ALL: Final = "all"
MAINTAINER: Final = "maintainer"
ROLE: Final = "role:"
_SHOWN: Final = 10


def roster(policy: Policy, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Everybody who may get mail: the agents of the chart, the maintainers, and names that the mailbox has."""
    listed = [agent.id for agent in policy.org.agents if agent.active] if policy.org is not None else []
    return tuple(dict.fromkeys((*listed, *(name for name in known if not is_group(name)), *policy.maintainers)))


def is_group(receiver: str) -> bool:
    """Whether the receiver is no single agent."""
    return receiver in (ALL, MAINTAINER) or receiver.startswith(ROLE)


def members(message: MailMessage, policy: Policy, everybody: Iterable[str]) -> tuple[str, ...]:
    """The agents that the message is for; its sender is not among those of a group."""
    receiver = message.receiver
    if receiver == ALL:
        meant = tuple(everybody)
    elif receiver == MAINTAINER:
        meant = policy.maintainers
    elif receiver.startswith(ROLE):
        holders = policy.org.holders if policy.org is not None else {}
        meant = tuple(holders.get(receiver.removeprefix(ROLE), ()))
    else:
        return (receiver,)
    return tuple(name for name in meant if name != message.sender)


def is_unread_by(message: MailMessage, agent: str, policy: Policy, everybody: Iterable[str]) -> bool:
    """Whether the agent has still to acknowledge the message."""
    if message.status != "unread":
        return False
    if not is_group(message.receiver):
        return message.receiver == agent
    return agent in members(message, policy, everybody) and not message.acknowledged_by(agent)


def standing(
    message: MailMessage, actor: str, policy: Policy, everybody: Iterable[str], *, unanswered: int | None = None
) -> MailStanding:
    """What the actor is to the message. Without a chart nobody can tell who all are, and everybody may answer."""
    meant = members(message, policy, everybody if policy.org is not None else (*everybody, actor))
    others = is_group(message.receiver) and any(name != actor and not message.acknowledged_by(name) for name in meant)
    return MailStanding(
        sender=actor == message.sender,
        receiver=actor in meant,
        maintainer=actor in policy.maintainers,
        others=others,
        unanswered=unanswered,
    )


def resolved(receiver: str, policy: Policy) -> str | AofError:
    """The receiver as a card names it; the only maintainer by name, a role with `role:` in front."""
    if receiver == ALL:
        return receiver
    if receiver == MAINTAINER and policy.maintainers:
        return policy.maintainers[0] if len(policy.maintainers) == 1 else MAINTAINER
    if problem := limits.name("to", receiver):
        return problem
    chart = policy.org
    if chart is None:
        return _without_roles(receiver) if receiver.startswith(ROLE) else receiver
    role = receiver.removeprefix(ROLE)
    if receiver not in chart.by_id and receiver not in policy.maintainers and role in chart.holders:
        return f"{ROLE}{role}"
    return unknown(policy, "to", receiver) or receiver


def unknown(policy: Policy, field: str, name: str) -> AofError | None:
    """The refusal of a name that the chart does not list: its mail would wait for ever."""
    chart = policy.org
    if chart is None or name in chart.by_id or name in policy.maintainers:
        return None
    there = sorted({*chart.by_id, *policy.maintainers})
    listed = ", ".join(there[:_SHOWN])
    return InvalidInput(
        f"the org chart has no agent '{name[:80]}'",
        f"{suggestion(name[:80], there, f'give one of {listed}')} for '{field}', or all, maintainer or role:NAME",
        Call("org_show", {}),
    )


def _without_roles(receiver: str) -> InvalidInput:
    return InvalidInput(
        f"there is no org chart that says who has the role '{receiver.removeprefix(ROLE)[:80]}'",
        "name an agent, all or maintainer",
    )
