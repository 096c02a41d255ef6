"""What people are told of what happened: which events are news, which channel takes them, and its outbox.

Must not know how news is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

import msgspec

from aof.documents.mail_rules import ESCALATED
from aof.errors import AofError
from aof.kernel.events import Event
from aof.kernel.limits import visible_line
from aof.kernel.model import iso
from aof.kernel.ports import Channel, ChannelFailed, Deliveries, Delivery, Notification, NotificationKind
from aof.store.port import Clock, EventLog
from aof.tasks.model import Task

Look = Callable[[str], Task]  # finds a task as it is now, and raises where it cannot
_KINDS: Final[dict[str, NotificationKind]] = {
    "task.transitioned": "status",
    "task.sla_alert": "sla",
    "task.overdue": "sla",
    "handoff.unanswered": "handoff",
    "task.question.asked": "question",
}


def is_news(event: Event) -> bool:
    """Whether the event may be news for somebody."""
    return event.type in _KINDS or event.type == ESCALATED or "notify" in event.payload


def _of_mail(event: Event) -> Notification:
    """A message that its receiver did not answer in time."""
    payload = event.payload
    return Notification(
        task_id=payload["messageId"],
        title=payload["text"],
        from_status="unread",
        status="escalated",
        actor=event.actor,
        timestamp=event.timestamp,
        seq=event.seq,
        kind="mail",
        priority="high",
        agent=payload["agent"],
    )


def news_of(event: Event, task: Task) -> Notification:
    """What such an event says, about the task as it is now."""
    payload = event.payload
    kind = _KINDS.get(event.type, "handoff")
    moved = kind == "status"
    return Notification(
        task_id=event.task_id,
        title=task.title,
        from_status=payload["from"] if moved else task.status,
        status=payload["to"] if moved else task.status,
        actor=event.agent or event.actor,
        timestamp=event.timestamp,
        seq=event.seq,
        reason=payload["question"]["text"]
        if kind == "question"
        else payload.get("reason") or payload.get("closed_reason"),
        kind=kind,
        priority=task.priority,
        agent=task.lease.agent if task.lease is not None else task.routing.agent,
        to=payload.get("notify"),
        handoff_id=payload.get("handoffId") if "notify" in payload else None,
    )


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
        names = (news.agent or "", news.actor)
        return (
            taken[news.kind]
            and (not self.priorities or news.priority in self.priorities)
            and (not self.agents or any(fnmatchcase(name, one) for name in names for one in self.agents))
        )


SHOWN: Final = 20  # pieces of news in one message
_TITLE, _REASON, _NAME = 100, 200, 60  # characters
_MENTION: Final = re.compile(r"@(?=\w)")
_COMMAND: Final = re.compile(r"<(?=[!@#])")
_WORDS: Final = {
    "sla": "waits too long in",
    "handoff": "nobody answered its handoff, it is in",
    "status": "is now in",
    "question": "has a question for you, it is",
    "mail": "nobody answered this message, it is",
}


def digest(project: str, news: Sequence[Notification], more: int = 0, *, details: bool = True) -> tuple[str, str]:
    """The subject and the text. `more` is how many others are not shown; without `details` only IDs and statuses."""
    total = len(news) + more
    if total == 1:
        subject = f"{_plain(project, _NAME)}: {news[0].task_id} {_WORDS[news[0].kind]} {news[0].status}"
    else:
        what = "tasks and messages" if any(one.kind == "mail" for one in news) else "tasks"
        subject = f"{_plain(project, _NAME)}: {total} {what} need a look"
    lines = [line for one in news[:SHOWN] for line in _lines(one, details=details)]
    left = total - min(len(news), SHOWN)
    if left:
        lines.append(f"… and {left} more: aof list")
    return subject, "\n".join(lines)


def _lines(news: Notification, *, details: bool) -> list[str]:
    urgent = f" [{news.priority}]" if news.priority in ("high", "critical") else ""
    head = f"{news.task_id}{urgent} {_WORDS[news.kind]} {news.status}"
    if not details:
        return [head]
    by = f" ({_plain(news.agent or news.actor, _NAME)})"
    reason = [f"    {_plain(news.reason, _REASON)}"] if news.reason else []
    return [f"{head}{by}: {_plain(news.title, _TITLE)}", *reason]


def _plain(text: str, limit: int) -> str:
    """One line within bounds that mentions nobody."""
    line = visible_line(text)
    cut = line if len(line) <= limit else f"{line[: limit - 1]}…"
    return _COMMAND.sub("‹", _MENTION.sub("＠", cut))  # noqa: RUF001 - it looks like the sign and is none


ELSEWHERE: Final = 5.0  # seconds after which it is looked again whether another process still sends
IDLE: Final = 60.0
_AT_ONCE: Final = 5_000  # events looked at in one step
_SAVED_EVERY: Final = 500  # events of no interest after which the place in the log is kept
_FIRST_RETRY, _LAST_RETRY = 5.0, 300.0  # seconds
_REMEMBERED: Final = 500

Tell = Callable[[str, str], None]


class DeliveryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a channel is served: its name, what it takes, and the seconds that news waits for company.

    The same news is not repeated within `quiet` seconds. Without `details` a message has IDs and statuses only.
    """

    name: str
    rules: Rules = Rules()
    batch: float = 10.0
    quiet: float = 3600.0
    details: bool = True


class Outbox:
    """What waits for one channel."""

    def __init__(
        self,
        plan: DeliveryPlan,
        channel: Channel,
        *,
        log: EventLog,
        deliveries: Deliveries,
        clock: Clock,
        look: Look,
        project: str,
        tell: Tell | None = None,
    ) -> None:
        self.plan = plan
        self._channel = channel
        self._log = log
        self._deliveries = deliveries
        self._clock = clock
        self._look = look
        self._project = project
        self._tell = tell or (lambda _action, _text: None)
        self._base = -1
        self.seen = 0
        self._news: dict[tuple[str, str], Notification] = {}
        self._more = 0
        self._due = 0
        self._refused: str | None = None

    def step(self, *, now_or_never: bool = False) -> float:
        """Collect, and send what is due; the seconds after which to call again although nothing happens.

        With `now_or_never` nothing waits for company, nor for its time to be tried again.
        """
        with self._deliveries.alone(self.plan.name) as alone:
            return self._stepped(now_or_never=now_or_never) if alone else ELSEWHERE

    def _stepped(self, *, now_or_never: bool) -> float:
        known = self._deliveries.load(self.plan.name)
        if (refused := self._channel.refused()) is not None or known is None or known.seq > self._log.head():
            return self._start_anew(refused, known)
        self._refused = None
        if known.seq != self._base:
            self._begin_at(known.seq)
        self._collect(known)
        if not self._news:
            if self.seen - known.seq >= _SAVED_EVERY:
                self._keep(msgspec.structs.replace(known, seq=self.seen))
            return IDLE
        now = self._clock.now()
        if now < self._due and not now_or_never:
            return (self._due - now) / 1000
        return self._send(known)

    def _start_anew(self, refused: str | None, known: Delivery | None) -> float:
        """What happened before somebody allowed the channel is no news, nor what another history had."""
        if refused is not None and refused != self._refused:
            self._tell("untrusted", f"channel {self.plan.name}: {refused}")
        self._refused = refused
        head = self._log.head()
        if known is None or known.seq != head:
            self._keep(Delivery(seq=head) if known is None else msgspec.structs.replace(known, seq=head))
        self._begin_at(head)
        return ELSEWHERE if refused is not None else IDLE

    def _begin_at(self, seq: int) -> None:
        self._base = self.seen = seq
        self._news, self._more, self._due = {}, 0, 0

    def _collect(self, known: Delivery) -> None:
        """The newest news of each task; of more tasks than fit into a message only how many there are."""
        for event in islice(self._log.events(self.seen), _AT_ONCE):
            self.seen = event.seq
            if not is_news(event):
                continue
            try:
                news = _of_mail(event) if event.type == ESCALATED else news_of(event, self._look(event.task_id))
            except AofError:  # the task is gone, or its file cannot be read: who asks for it is told
                continue
            if not self.plan.rules.take(news) or self._repeats(news, known):
                continue
            key = (news.task_id, news.kind)
            if not self._news:
                self._due = self._clock.now() + round(self.plan.batch * 1000)
            if key in self._news or len(self._news) < SHOWN:
                self._news.pop(key, None)
                self._news[key] = news
            else:
                self._more += 1

    def _repeats(self, news: Notification, known: Delivery) -> bool:
        last = known.recent.get(_said(news))
        return last is not None and self._clock.now() - last < self.plan.quiet * 1000

    def _send(self, known: Delivery) -> float:
        news, now = tuple(self._news.values()), self._clock.now()
        subject, text = digest(self._project, news, self._more, details=self.plan.details)
        try:
            self._channel.send(subject, text)
        except ChannelFailed as error:
            return self._failed(known, str(error))
        if known.failures:
            self._tell("notify", f"channel {self.plan.name} works again after {known.failures} failures")
        recent = known.recent | {_said(one): now for one in news}
        newest = sorted(recent.items(), key=lambda one: one[1])[-_REMEMBERED:]
        count = known.sent + len(news) + self._more
        self._keep(Delivery(seq=self.seen, sent=count, sent_at=iso(now), recent=dict(newest)))
        self._begin_at(self.seen)
        return 0.0

    def _failed(self, known: Delivery, error: str) -> float:
        """Its place in the log stays: everything is sent once the channel works, or the service starts again."""
        wait = min(_FIRST_RETRY * float(1 << min(known.failures, 10)), _LAST_RETRY)
        now = self._clock.now()
        failed = msgspec.structs.replace(
            known, failures=known.failures + 1, failed_since=known.failed_since or iso(now), error=error
        )
        self._keep(failed)
        self._due = now + round(wait * 1000)
        self._tell("trouble", f"channel {self.plan.name}: {error}; it is tried again in {wait:.0f} s")
        return wait

    def _keep(self, delivery: Delivery) -> None:
        self._deliveries.save(self.plan.name, delivery)
        self._base = delivery.seq


def _said(news: Notification) -> str:
    return f"{news.task_id} {news.kind} {news.status} {news.reason or ''}"[:300]
