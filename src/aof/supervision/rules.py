"""What of a task needs a person and since when, and what the log tells of work over time.

Reviews, questions, what is stuck, dead, overdue or abandoned; runs with what they waited for, moves between statuses
by day, lead times. A due date and a lease count from the moment at which they run out, which may be still to come;
whether a worker still shows life is for the caller to look up. A store finds a page of it. Must not know who is asked,
nor how it is found, kept or shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

from aof.kernel.model import FINISHED, PRIORITIES, end_of
from aof.tasks.model import Question, Task
from aof.workflows.model import held_leases

Need = Literal["gate", "question", "blocked", "deadletter", "overdue", "lease", "agent", "mail", "handoff", "edit"]
NEEDS: Final[tuple[Need, ...]] = (
    "gate",
    "question",
    "blocked",
    "deadletter",
    "overdue",
    "lease",
    "agent",
    "mail",
    "handoff",
    "edit",
)
_TURNS: Final = {"question": "0", "gate": "1", "overdue": "2"}
_LAST_TURN: Final = "3"
_STUCK: Final = frozenset({"blocked", "waiting_input", "waiting_permission"})
_RESTING: Final = frozenset({"backlog", "blocked"})


_Hops = list[dict[str, Any]] | None  # of a gated task


class Attention(NamedTuple):
    """One thing that needs a person: since when, of which kind, which task, which hop or question, and whose it is.

    `turn` comes first in the order: who is held up most comes first.
    """

    turn: str
    since: str
    kind: str
    task_id: str
    item: str = ""
    person: str = ""


def turn_of(kind: str, priority: str = "") -> str:
    """The place of a kind in the order: questions of agents, then reviews by priority, then what is overdue."""
    turn = _TURNS.get(kind, _LAST_TURN)
    return f"{turn}{PRIORITIES.index(priority)}" if kind == "gate" else turn


def attention_of(task: Task) -> tuple[Attention, ...]:
    """Everything about the task that needs a person, now or once its time has come."""
    if task.archived:
        return ()
    if task.status in FINISHED:
        return tuple(_dead(task))
    hops, asked = task.workflow["hops"] if task.gated else None, task.open_questions
    return (*_gates(task, hops), *_questions(task, asked), *_stuck(task, hops, asked), *_overdue(task), *_leases(task))


def _one(task: Task, kind: Need, since: str, item: str = "") -> Attention:
    return Attention(turn_of(kind, task.priority), since, kind, task.id, item, task.owner or "")


def _dead(task: Task) -> Iterator[Attention]:
    if task.status == "deadletter":
        yield _one(task, "deadletter", task.ended_at or task.last_transition_at)


def _gates(task: Task, hops: _Hops) -> Iterator[Attention]:
    if hops is None:
        if task.status == "review":
            yield _one(task, "gate", task.last_transition_at)
        return
    if task.status not in _RESTING and task.cancel is None:
        for hop in hops:
            if hop.get("status") == "review":
                yield _one(task, "gate", hop.get("openedAt") or task.last_transition_at, hop["id"])


def _questions(task: Task, asked: tuple[Question, ...]) -> Iterator[Attention]:
    return (_one(task, "question", one.at, one.id) for one in asked)


def _stuck(task: Task, hops: _Hops, questions: tuple[Question, ...]) -> Iterator[Attention]:
    """What somebody has blocked, and no other task, handoff or question; of a workflow also single hops."""
    asked = {one.hop for one in questions}
    if hops is not None:
        stuck = [hop for hop in hops if hop.get("status") == "blocked"]
        held = task.blocked is not None and task.blocked.kind == "paused"
        for hop in stuck if not held else ():
            if hop["id"] not in asked:
                yield _one(task, "blocked", hop.get("openedAt") or task.last_transition_at, hop["id"])
        if stuck:
            return
    blocked = task.blocked
    if blocked is None or blocked.kind not in _STUCK or blocked.dependency is not None:
        return
    if not task.handoffs and None not in asked:
        yield _one(task, "blocked", blocked.since)


def _overdue(task: Task) -> Iterator[Attention]:
    if task.due is not None:
        yield _one(task, "overdue", end_of(task.due))


def _leases(task: Task) -> Iterator[Attention]:
    if task.status == "in-progress":
        for place, lease in held_leases(task):
            yield _one(task, "lease", lease.expires_at, place.removeprefix(task.id).removeprefix("/hops/"))


Place = tuple[str, str, str, str, str]  # turn, moment, kind, task, hop or question: the order of what needs a person


class AttentionQuery(NamedTuple):
    """Which: of these kinds, up to a moment, for a person or nobody in particular, after a place in the order."""

    before: str
    kinds: tuple[str, ...]
    person: str | None = None
    behind: Place | None = None
    limit: int | None = None


class AttentionPage(NamedTuple):
    """A page of it, in its order, and how many there are of each kind, also before the place."""

    found: tuple[Attention, ...]
    by_kind: dict[str, int]


def selected(query: AttentionQuery, every: Iterable[Attention]) -> AttentionPage:
    """The answer of a store that looks at everything."""
    kept = sorted(
        one
        for one in every
        if one.kind in query.kinds and one.since <= query.before and query.person in (None, one.person or query.person)
    )
    page = [one for one in kept if query.behind is None or tuple(one[:5]) > query.behind]
    return AttentionPage(tuple(page[: query.limit]), dict(Counter(one.kind for one in kept)))


class RunWait(NamedTuple):
    """A time in which a run waited for an answer; None: it still does."""

    since: str
    until: str | None
    kind: str = "question"


class RunSpan(NamedTuple):
    """One run from its beginning to its end, None while it goes on."""

    seq: int
    run_id: str
    task_id: str
    hop: str | None
    agent: str
    attempt: int
    started_at: str
    ended_at: str | None
    status: str
    waits: tuple[RunWait, ...] = ()


class SpanQuery(NamedTuple):
    """Which runs, the last one first: of a task, an agent, that went on in a time, that began before an event."""

    task_id: str | None = None
    agent: str | None = None
    since: str | None = None
    before: str | None = None
    behind: int | None = None
    limit: int = 50


class SpanPage(NamedTuple):
    """A page of runs, and how many match in all."""

    total: int
    spans: tuple[RunSpan, ...]


class AgentRuns(NamedTuple):
    """How the runs of one agent ended."""

    agent: str
    attempts: int
    by_status: dict[str, int]


class FlowFacts(NamedTuple):
    """Moves by day from status to status (a new task comes from none), the times of what was finished, and runs.

    `moves` are all that there ever were, `leads` (day, milliseconds since creation, since the first run) and `agents`
    only those from the day on that was asked for.
    """

    moves: tuple[tuple[str, str, str, int], ...]
    leads: tuple[tuple[str, int, int], ...]
    agents: tuple[AgentRuns, ...]
