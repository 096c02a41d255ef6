"""The inbox of what needs a person (tasks, abandoned leases, silent agents, mail, handoffs), and the agents at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

from msgspec import UNSET, UnsetType, structs

from aof.documents import mail_rules, mail_service
from aof.documents.mailbox import opened
from aof.errors import AofError, Call, EditWaits, HopRoleMismatch, NotAllowed, OwnWork
from aof.kernel import commands, unit_of_work
from aof.kernel import limits as kernel_limits
from aof.kernel import model as kernel_model
from aof.kernel.declarations import Cursor, param
from aof.kernel.model import run_place
from aof.kernel.operation import Spelling, operation
from aof.kernel.results import Result
from aof.org.model import HUMAN
from aof.queries import read_models
from aof.queries.ended_leases import ended_leases
from aof.runs import model as runs_model
from aof.store import port
from aof.store.lists import Query
from aof.supervision import rules
from aof.supervision.rules import Need
from aof.tasks import graph
from aof.workflows import model as workflows_model
from aof.workflows.model import held_leases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.kernel.context import CallContext
    from aof.org.model import Agent
    from aof.org.routing import AgentHealth
    from aof.supervision.rules import Attention
    from aof.tasks.model import Task


_PARTS = 5  # of a place: turn, moment, kind, what, which part of it
_REASON = 500  # characters
_OF_TASKS = ("gate", "question", "blocked", "deadletter", "overdue")
MOST_ROWS: Final = 1_000  # on a page
Limit = Annotated[int, param("at most this many", Spelling(note="(default 50)"), ge=0, le=MOST_ROWS)]


class NextCall(Result, frozen=True, kw_only=True):
    """A call that works, with its arguments under the names that they have over the wire."""

    operation: str
    arguments: dict[str, Any]

    @classmethod
    def of(cls, call: Call) -> NextCall:
        """The call as an answer shows it."""
        return cls(operation=call.operation, arguments={_wired(name): value for name, value in call.arguments.items()})


def _wired(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


class InboxItem(Result, frozen=True, kw_only=True):
    """One thing that needs a person. `reason` is text by others; `next` are calls that work, the usual one first.

    `agent` is who asks, worked, holds or is silent; `person` whom it waits for, where that is one person.
    """

    id: str
    kind: str
    since: str
    age: int
    reason: str
    task_id: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    priority: str | UnsetType = UNSET
    rev: int | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    person: str | UnsetType = UNSET
    hop: str | UnsetType = UNSET
    question: str | UnsetType = UNSET
    choices: tuple[str, ...] | UnsetType = UNSET
    message_id: str | UnsetType = UNSET
    handoff_id: str | UnsetType = UNSET
    next: tuple[NextCall, ...] = ()


class InboxPage(Result, frozen=True, kw_only=True):
    """What needs a person, oldest first, and how much of it there is by kind."""

    total: int
    by_kind: dict[str, int]
    items: tuple[InboxItem, ...]
    next_cursor: str | UnsetType = UNSET


class HeldWork(Result, frozen=True, kw_only=True):
    """A task, or a hop, that an agent holds; `left` is negative where the lease ran out so many seconds ago."""

    task_id: str
    title: str
    status: str
    run_id: str
    since: str
    lease_ends: str
    left: int
    expired: bool
    hop: str | UnsetType = UNSET
    question: str | UnsetType = UNSET


class AgentRow(Result, frozen=True, kw_only=True):
    """One agent: its last sign of life, its load against its capacity, and what it holds.

    `reason` and `since` say why and since when it does not answer; `listed` whether the org chart has it.
    """

    id: str
    listed: bool
    active: bool
    available: bool
    load: int
    holds: tuple[HeldWork, ...]
    name: str | UnsetType = UNSET
    team: str | UnsetType = UNSET
    runner: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    since: str | UnsetType = UNSET
    last_seen: str | UnsetType = UNSET
    capacity: int | UnsetType = UNSET


class AgentPage(Result, frozen=True, kw_only=True):
    """Agents in the order of their names."""

    total: int
    agents: tuple[AgentRow, ...]
    next_cursor: str | UnsetType = UNSET


@operation(
    effect="read",
    section="see",
    order=5,
    summary="what needs a person, most urgent first",
    aliases=("attention", "todo"),
    notes="'--kind review' is the same as '--kind gate'.",
    example="aof inbox --kind question --kind review",
)
def inbox(
    context: CallContext,
    *,
    kind: Annotated[Sequence[Need], param("only this kind")] = (),
    person: Annotated[str, param("only what waits for this person or for nobody in particular")] | None = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> InboxPage:
    """What needs a person: questions first, then reviews by priority, what is overdue, and all that is stuck."""
    return _Look(context).page(tuple(kind), person, limit, cursor)


class _Look:
    """One call, at one point in time."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._environment = context.environment
        self._store = context.environment.store
        self._now = context.environment.clock.now()

    def page(self, kind: tuple[str, ...], person: str | None, limit: int, cursor: str | None) -> InboxPage:
        """A page of what needs a person."""
        for one in kind:
            if problem := kernel_limits.choice("kind", one, rules.NEEDS):
                raise problem
        if person is not None and (problem := kernel_limits.name("person", person)):
            raise problem
        if problem := kernel_limits.whole("limit", limit, 0, MOST_ROWS):
            raise problem
        wanted = kind or rules.NEEDS
        behind = read_models.found_in("inbox", cursor, _PARTS) if cursor is not None else None
        now = kernel_model.iso(self._now)
        asked = rules.AttentionQuery(
            before=now,
            kinds=tuple(one for one in wanted if one in _OF_TASKS),
            person=person,
            behind=(behind[0], behind[1], behind[2], behind[3], behind[4]) if behind is not None else None,
            limit=limit + 1,
        )
        page = self._store.attention(asked)
        others = [one for one in self._others(wanted) if person in (None, one[0].person or person)]
        tasks = {task.id: task for task in self._store.records({one.task_id for one in page.found})}
        items = {one: self._item(one, task) for one in page.found if (task := tasks.get(one.task_id)) is not None}
        items.update((one, item) for one, item in others if behind is None or tuple(one[:_PARTS]) > behind)
        shown = sorted(items)[: limit + 1]
        by_kind = Counter(page.by_kind)
        by_kind.update(one.kind for one, _ in others)
        more = shown[limit - 1] if limit and len(shown) > limit else None
        return InboxPage(
            total=by_kind.total(),
            by_kind={name: by_kind[name] for name in rules.NEEDS if by_kind[name]},
            items=tuple(self._for_caller(items[one]) for one in shown[:limit]),
            next_cursor=read_models.place_in("inbox", *more[:_PARTS]) if more is not None else UNSET,
        )

    def _for_caller(self, item: InboxItem) -> InboxItem:
        """An approval is offered to who may approve; whose own work it is reads that somebody else has to."""
        if item.kind != "gate":
            return item
        at = {"hop": item.hop} if isinstance(item.hop, str) else {}
        reason = item.reason
        try:
            self._context.dispatcher.rehearse(commands.Approve, str(item.task_id), **at)
        except OwnWork as refused:
            reason = f"{reason}, by somebody other than {refused.details['agent']}"
        except (NotAllowed, HopRoleMismatch):
            pass
        except AofError:
            return item  # what is wrong with the task says nothing of the caller
        else:
            return item
        following = tuple(call for call in item.next if call.operation != "approve")
        return structs.replace(item, reason=reason, next=following)

    def _others(self, wanted: Sequence[str]) -> Iterator[tuple[Attention, InboxItem]]:
        if "lease" in wanted:
            for ended in ended_leases(self._environment):
                late = ended.need._replace(since=kernel_model.iso(ended.end))
                yield late, self._item(late, ended.task)
        if "agent" in wanted:
            for agent, health in self._store.health().items():
                if not health.available:
                    one = _one(health.since, "agent", agent)
                    call = Call("agents", {"agent": agent})
                    yield one, self._plain(one, health.reason or "does not answer", agent=agent, calls=(call,))
        if "handoff" in wanted:
            yield from self._handoffs()
        if "edit" in wanted:
            yield from self._edits()
        if "mail" in wanted:
            with suppress(AofError):  # a mailbox that cannot be read hides nothing else
                yield from self._mail()

    def _edits(self) -> Iterator[tuple[Attention, InboxItem]]:
        """Edits by hand that wait for a maintainer, which they do only where callers are bound."""
        here, files = self._environment, self._store.working_copy
        if files is None or not here.policy_for_edits().binds:
            return
        for task_id in files.preloaded(files.changes()[1]):
            error = unit_of_work.refusal(self._store, here.clock, here.policy_for_edits, task_id)
            task = next(iter(self._store.records({task_id})), None)
            if not isinstance(error, EditWaits) or task is None:
                continue
            one = _one(task.updated_at, "edit", task_id)
            settle = (Call("sync", {"accept": task_id}), Call("sync", {"refuse": task_id}))
            calls = (*settle, Call("show", {"task_id": task_id}))
            yield one, self._item(one, task, reason=error.message, calls=calls)

    def _people(self) -> frozenset[str]:
        """The names that stand for people: maintainers, agents with a person behind them, and any person."""
        chart = self._environment.chart.readable()
        seats = [one.id for one in chart.agents if one.runner.kind == "human"] if chart is not None else []
        listed = chart.by_id if chart is not None else {}
        people = [name for name in self._environment.policy.maintainers if name not in listed]
        return frozenset((*seats, *people, HUMAN))

    def _handoffs(self) -> Iterator[tuple[Attention, InboxItem]]:
        people = self._people()
        handed = self._store.find(Query(open_handoffs=True, counted=False)).tasks
        waiting = {task.id: task for task in handed if any(one.to_agent in people for one in task.handoffs)}
        for one in self._store.handoffs(waiting.values()) if waiting else ():
            task = waiting.get(one.task_id)
            if task is None or not one.is_open or one.to_agent not in people:
                continue
            person = "" if one.to_agent == HUMAN else one.to_agent
            need = _one(one.answered_at or one.timestamp, "handoff", task.id, one.id, person)
            what = "handoff_return" if one.state == "accepted" else "handoff_accept"
            given = {"handoff_id": one.id, "agent": one.to_agent}
            call = Call(what, given | ({"status": "success", "result": "…"} if what == "handoff_return" else {}))
            calls = (call, Call("handoff_show", {"handoff_id": one.id}))
            yield need, self._item(need, task, reason=one.reason, agent=one.from_agent, calls=calls)

    def _mail(self) -> Iterator[tuple[Attention, InboxItem]]:
        """Messages to people that nobody has acknowledged, and that want an answer."""
        with self._store.unit(port.Scope()) as unit:
            text = unit.document(mail_rules.PATH)
        if not text:
            return
        box, people = opened(text), self._people()
        policy = self._environment.chart.readable_policy()
        everybody = mail_service.everybody_in(box, policy)
        for head in box.heads:
            if head.status != "unread" or head.type == "notify":
                continue
            meant = [name for name in mail_rules.members(head, policy, everybody) if name in people]
            due = [name for name in meant if mail_rules.is_unread_by(head, name, policy, everybody)]
            if due:
                one = _one(_moment(head.date), "mail", head.message_id, person=due[0])
                call = Call("mail_ack", {"message_id": head.message_id, "agent": due[0], "reason": "…"})
                calls = (call, Call("mail_show", {"message_id": head.message_id}))
                yield one, self._plain(one, head.subject, agent=head.sender, message_id=head.message_id, calls=calls)

    def _plain(self, one: Attention, reason: str, *, calls: tuple[Call, ...], **more: Any) -> InboxItem:
        return InboxItem(
            id="/".join(part for part in (one.kind, one.task_id, one.item) if part),
            kind=one.kind,
            since=one.since,
            age=max(0, (self._now - kernel_model.millis(one.since)) // 1000),
            reason=reason if len(reason) <= _REASON else f"{reason[: _REASON - 1]}…",
            person=one.person or UNSET,
            next=tuple(NextCall.of(call) for call in calls),
            **more,
        )

    def _item(
        self,
        one: Attention,
        task: Task,
        *,
        reason: str | None = None,
        agent: str | None = None,
        calls: tuple[Call, ...] = (),
    ) -> InboxItem:
        """What of a task needs a person, with the calls that go on with it."""
        told = _TELLERS.get(one.kind)
        said, who, following = told(task, one.item) if told is not None else (reason or "", agent, calls)
        question = next((held for held in task.questions if held.id == one.item), None)
        hop = question.hop if question is not None else one.item if one.kind in ("gate", "blocked", "lease") else None
        return self._plain(
            one,
            said,
            task_id=task.id,
            title=task.title,
            status=task.status,
            priority=task.priority,
            rev=task.rev,
            agent=who or UNSET,
            hop=hop or UNSET,
            question=question.id if question is not None else UNSET,
            choices=question.choices if question is not None and question.choices else UNSET,
            handoff_id=one.item if one.kind == "handoff" else UNSET,
            calls=following,
        )


_Told = tuple[str, str | None, tuple[Call, ...]]


def _gate(task: Task, hop: str) -> _Told:
    at = {"hop": hop} if hop else {}
    state = next((one for one in task.workflow["hops"] if one["id"] == hop), None) if hop else None
    who = state.get("agent") if state is not None else task.retry.agents[-1] if task.retry.agents else None
    why = state.get("reason") if state is not None else None
    calls = (
        Call("approve", {"task_id": task.id} | at),
        Call("reject", {"task_id": task.id, "blockers": ["…"]} | at),
        Call("show", {"task_id": task.id}),
    )
    return why or "waits for a review", who, calls


def _question(task: Task, item: str) -> _Told:
    asked = next(one for one in task.questions if one.id == item)
    call = Call("answer", {"task_id": task.id, "question": item, "text": "…"})
    return asked.text, asked.by, (call, Call("show", {"task_id": task.id}))


def _blocked(task: Task, hop: str) -> _Told:
    state = next((one for one in task.workflow["hops"] if one["id"] == hop), None) if hop else None
    held = task.blocked
    why = state.get("reason") if state is not None else held.reason if held is not None else None
    who = state.get("agent") if state is not None else held.by if held is not None else None
    asks = state is None and held is not None and held.kind == "waiting_input"
    on = Call("answer", {"task_id": task.id, "text": "…"}) if asks else Call("unblock", {"task_id": task.id})
    return why or "is blocked", who, (on, Call("show", {"task_id": task.id}))


def _dead(task: Task, _item: str) -> _Told:
    error = task.last_error
    why = f"{error.code}: {error.message}" if error is not None else "was given up"
    who = task.retry.agents[-1] if task.retry.agents else None
    retry = Call("retry", {"task_id": task.id, "reason": "…"})
    return why, who, (retry, Call("archive", {"task_id": task.id}), Call("show", {"task_id": task.id}))


def _overdue(task: Task, _item: str) -> _Told:
    who = task.lease.agent if task.lease is not None else task.routing.agent
    calls = (Call("show", {"task_id": task.id}), Call("edit", {"task_id": task.id, "due": "+3d"}))
    return f"was due {task.due}", who, calls


def _lease(task: Task, hop: str) -> _Told:
    held = dict(held_leases(task)).get(run_place(task.id, hop or None))
    who = held.agent if held is not None else None
    calls = (Call("recover", {}), Call("show", {"task_id": task.id}))
    return f"no sign of life from {who}, and nobody has reclaimed the task", who, calls


_TELLERS = {
    "gate": _gate,
    "question": _question,
    "blocked": _blocked,
    "deadletter": _dead,
    "overdue": _overdue,
    "lease": _lease,
}


def _one(since: str, kind: rules.Need, what: str, item: str = "", person: str = "") -> Attention:
    return rules.Attention(rules.turn_of(kind), since, kind, what, item, person)


def _moment(date: str) -> str:
    """The moment of a message; one that was written by hand may have any text there."""
    try:
        return kernel_model.iso(kernel_model.millis(date))
    except ValueError:
        return kernel_model.iso(0)


@operation(
    effect="read", section="team", order=5, summary="which agents are working, and on what", example="aof agents"
)
def agents(
    context: CallContext,
    *,
    agent: Annotated[str, param("only this agent")] | None = None,
    limit: Limit = 50,
    cursor: Cursor | None = None,
) -> AgentPage:
    """Who is working: when each agent was last seen, what it holds under which lease, its load and capacity."""
    if agent is not None and (problem := kernel_limits.name("agent", agent)):
        raise problem
    if problem := kernel_limits.whole("limit", limit, 0, MOST_ROWS):
        raise problem
    behind = read_models.found_in("agents", cursor, 1)[0] if cursor is not None else ""
    store, now = context.environment.store, context.environment.clock.now()
    running = store.find(Query(status=("in-progress",), counted=False)).tasks
    handed = store.find(Query(open_handoffs=True, counted=False)).tasks
    held = {one.id: one for one in (*running, *handed)}.values()
    load = Counter(name for one in held for name in workflows_model.occupied_by(one))
    chart = context.environment.chart.readable()
    listed = chart.by_id if chart is not None else {}
    health = store.health()
    silent = {name for name, one in health.items() if not one.available}
    names = sorted({*listed, *load, *silent})
    if agent is not None:
        names = [agent] if agent in names or agent in store.last_seen() else []
    shown = [name for name in names if name > behind][: limit + 1]
    page = shown[:limit]
    work = _work(context, running, frozenset(page), now)
    seen = store.last_seen()
    rows = tuple(
        _row(name, listed.get(name), health.get(name), load[name], work.get(name, []), seen.get(name)) for name in page
    )
    more = read_models.place_in("agents", page[-1]) if page and len(shown) > limit else UNSET
    return AgentPage(total=len(names), agents=rows, next_cursor=more)


def _work(
    context: CallContext, running: tuple[Task, ...], names: frozenset[str], now: int
) -> dict[str, list[tuple[HeldWork, str]]]:
    """What each of these holds, with the last sign of life of the run."""
    leases = [(task, place, lease) for task in running for place, lease in workflows_model.held_leases(task)]
    mine = [(task, place, lease) for task, place, lease in leases if lease.agent in names]
    boot = context.environment.clock.boot()
    beats = {
        place: runs_model.present_heartbeat(beat, now, boot)
        for place, beat in context.environment.store.heartbeats(place for _, place, _ in mine).items()
    }
    found: dict[str, list[tuple[HeldWork, str]]] = {}
    for task, place, lease in mine:
        beat = beats.get(place)
        end = runs_model.lease_end(lease, beat)
        asked = next((one.id for one in task.open_questions if one.run_id == lease.run_id), None)
        one = HeldWork(
            task_id=task.id,
            title=task.title,
            status=graph.normalized_status(task, beat, now),
            run_id=lease.run_id,
            since=lease.acquired_at,
            lease_ends=kernel_model.iso(end),
            left=(end - now) // 1000,
            expired=end <= now,
            hop=place.removeprefix(task.id).removeprefix("/hops/") or UNSET,
            question=asked or UNSET,
        )
        own = beat is not None and beat.run_id == lease.run_id
        alive = beat.last_heartbeat if own and beat is not None else lease.acquired_at
        found.setdefault(lease.agent, []).append((one, alive))
    return found


def _row(  # noqa: PLR0917 - what a row is made of
    name: str,
    entry: Agent | None,
    health: AgentHealth | None,
    load: int,
    work: list[tuple[HeldWork, str]],
    seen: str | None,
) -> AgentRow:
    signs = [sign for sign in (seen, *(alive for _, alive in work)) if sign is not None]
    silent = health if health is not None and not health.available else None
    return AgentRow(
        id=name,
        listed=entry is not None,
        active=entry.active if entry is not None else True,
        available=silent is None,
        load=load,
        holds=tuple(one for one, _ in work),
        name=(entry.name or UNSET) if entry is not None else UNSET,
        team=(entry.team or UNSET) if entry is not None else UNSET,
        runner=entry.runner.kind if entry is not None else UNSET,
        reason=silent.reason if silent is not None else UNSET,
        since=silent.since if silent is not None else UNSET,
        last_seen=max(signs) if signs else UNSET,
        capacity=entry.concurrency if entry is not None and entry.concurrency is not None else UNSET,
    )
