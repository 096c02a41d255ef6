"""The outbox of one channel: follows the log, collects what the channel takes, and sends it in one message.

The log is what is to be sent, so nothing waits in memory that a restart would lose: only how far the channel has come
is kept. One failing or slow channel holds up no other and no command; it is tried again, later and later.
Must not know which service is behind a channel, nor in which thread it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

import msgspec

from aof.app.notifications.digest import SHOWN, digest
from aof.app.notifications.news import Look, is_news, told
from aof.app.notifications.rules import Rules
from aof.core.errors.base import AofError
from aof.core.model.times import iso
from aof.ports.clock import Clock
from aof.ports.notifier import Channel, ChannelFailed, Deliveries, Delivery, Notification
from aof.ports.store import EventLog

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
                news = told(event, self._look)
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
