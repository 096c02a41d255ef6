"""Which news a channel takes: by status, priority, agent and kind. Must not know how it is sent."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

import msgspec

from aof.ports.notifier import Notification

LOOKED_AT: Final = ("review", "blocked", "done", "deadletter")


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel takes. `agents` are patterns such as `swe-*`; without any, everybody's news is taken."""

    statuses: tuple[str, ...] = LOOKED_AT
    priorities: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    sla: bool = True
    handoffs: bool = True
    mail: bool = True
    questions: bool = True

    def take(self, news: Notification) -> bool:
        """Whether this is for the channel."""
        taken = {
            "status": news.status in self.statuses,
            "sla": self.sla,
            "handoff": self.handoffs,
            "mail": self.mail,
            "question": self.questions,
        }
        wanted = taken[news.kind]
        return wanted and (not self.priorities or news.priority in self.priorities) and self._concerns(news)

    def _concerns(self, news: Notification) -> bool:
        names = (news.agent or "", news.actor)
        return not self.agents or any(fnmatchcase(name, one) for name in names for one in self.agents)
