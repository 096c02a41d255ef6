"""What time does to an open handoff: whether something is due now, and when to look again.

An agent that AOF starts has 30 seconds to acknowledge; pulling agents and people have a limit only where the chart says
so. One that does not run the task itself, of a broadcast or an escalation, is started for a task of its own: its
answer. Whoever has accepted is reminded once when the return is overdue; the policy of the handoff comes a first step
of the backoff later. Must not know how an action is carried out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.model.handoffs.record import Handoff
from aof.core.model.lifecycle import FINISHED
from aof.core.model.org_chart import HUMAN
from aof.core.model.task import Task
from aof.core.model.times import duration_ms, iso, millis
from aof.core.scheduling.ack_timeout import ACKNOWLEDGED_MS
from aof.core.scheduling.crew import STARTED, Seat
from aof.core.scheduling.view import Action, View

BACKOFF_MS: Final = 2_000
RUNS_IT: Final = frozenset({"sequential", "delegation"})  # the receiver runs the task itself
TO_ANSWER: Final = "started to answer"  # the reason of an acceptance that AOF gives for such an agent
_ENDINGS: Final = {"done": "handoff_return", "deadletter": "handoff_return"}


class Timer(msgspec.Struct, frozen=True):
    """What is to be done with a handoff, from when on, and why."""

    at: int
    action: str
    reason: str


def planned(view: View) -> list[Action]:
    """What is due of all open handoffs; of the others, what they wait for."""
    found: list[Action] = []
    for task, handoff in view.snapshot.handed:
        timer = _settled(view, task, handoff) or _timer(view, task, handoff)
        if isinstance(timer, str):
            view.leave(task, (timer,))
        elif timer.at > view.now:
            view.again(timer.at)
        else:
            found.append(
                Action(
                    action=timer.action,
                    task_id=task.id,
                    reason=timer.reason,
                    agent=handoff.to_agent,
                    handoff_id=handoff.id,
                )
            )
    return found


def _settled(view: View, task: Task, handoff: Handoff) -> Timer | None:
    """A task that is over ends its handoffs: what was done under one is its return, all else is withdrawn."""
    if handoff.outlives(task.status):
        return None
    works = handoff.state == "accepted" and handoff.type == "delegation"
    action = _ENDINGS.get(task.status, "handoff_withdraw") if works else "handoff_withdraw"
    return Timer(view.now, action, f"{task.id} is {task.status}")


def _timer(view: View, task: Task, handoff: Handoff) -> Timer | str:
    seat = view.crew.seats.get(handoff.to_agent)
    if handoff.state == "requested" and task.gated and handoff.trigger == "task_completion":
        return _hop(view, task, handoff)
    if handoff.state == "requested":
        return _requested(view, task, handoff, seat)
    rule = {"queued": _queued, "deferred": _deferred}.get(handoff.state, _accepted)
    return rule(view, handoff, seat)


def _queued(view: View, handoff: Handoff, seat: Seat | None) -> Timer | str:
    busy = view.capacity.full_for(seat) if seat is not None else None
    if busy is not None:
        return f"handoff {handoff.id} is queued: {busy}"
    return Timer(view.now, "handoff_deliver", f"{handoff.to_agent} has room for {handoff.id}")


def _requested(view: View, task: Task, handoff: Handoff, seat: Seat | None) -> Timer | str:
    """Starting a worker is its acknowledgement; without that, its time runs."""
    length = _ack_ms(seat)
    if length is None:
        return f"handoff {handoff.id} waits for {handoff.to_agent} to answer"
    due = _since(handoff) + length
    if due > view.now and _can_start(view, task, handoff):
        view.again(due)
        return Timer(view.now, "handoff_accept", f"{handoff.to_agent} can be started for {handoff.id}")
    return Timer(due, "handoff_timeout", f"{handoff.to_agent} has not acknowledged {handoff.id} by {iso(due)}")


def _hop(view: View, task: Task, handoff: Handoff) -> Timer | str:
    """Whoever takes the hop takes the handoff: the receiver by accepting it, and from any other it is withdrawn."""
    name = handoff.reason.split()[1]
    hop: dict[str, Any] = next((one for one in task.workflow["hops"] if one["id"] == name), {})
    if hop.get("status") == "ready" and handoff.reason.endswith(str(hop.get("openedAt"))):
        return f"handoff {handoff.id} waits for {handoff.to_agent} to take hop {name}"
    taken = hop.get("agent")
    if taken == handoff.to_agent:
        return Timer(view.now, "handoff_accept", f"{taken} has taken hop {name}")
    return Timer(view.now, "handoff_withdraw", f"{taken or 'nobody'} has taken hop {name}")


def _can_start(view: View, task: Task, handoff: Handoff) -> bool:
    """Whether the receiver would be started to run the task: not beside a sender that keeps running it."""
    beside = handoff.type == "delegation" and (task.lease is not None or task.gated)
    return view.snapshot.hosting and not beside and view.unfit(handoff.to_agent) is None


def _deferred(view: View, handoff: Handoff, seat: Seat | None) -> Timer | str:
    """An agent that has put its answer off and that nobody can wait for gets the default time."""
    if _ack_ms(seat) is None:
        return f"handoff {handoff.id} waits for {handoff.to_agent}, who has put it off"
    answer = handoff.acceptance
    assert answer is not None
    due = millis(answer.estimated_completion or answer.acknowledged_at) + view.policy.scheduling.handoff_ms
    return Timer(due, "handoff_timeout", f"{handoff.to_agent} has put {handoff.id} off until {iso(due)}")


def _accepted(view: View, handoff: Handoff, seat: Seat | None) -> Timer | str:
    if handoff.to_agent == HUMAN:
        return f"handoff {handoff.id} waits for a person"
    window = duration_ms(handoff.return_protocol.timeout)
    if window is None and (seat is None or seat.kind not in STARTED):
        return f"handoff {handoff.id} waits for the return from {handoff.to_agent}"
    due = _return_due(handoff, window or view.policy.scheduling.handoff_ms)
    asked = _asked(view, handoff)
    if asked is not None and (asked.action == "handoff_return" or view.now < due):
        view.again(due)
        return asked
    late = f"{handoff.to_agent} has not returned {handoff.id} by {iso(due)}"
    reminds = handoff.reminded_at is None and not handoff.resends
    return Timer(due, "handoff_remind" if reminds else "handoff_timeout", late)


def _asked(view: View, handoff: Handoff) -> Timer | None:
    """Of an agent that is started to answer: its answer is a task, and the end of that is the return."""
    if handoff.acceptance is None or handoff.acceptance.reason != TO_ANSWER:
        return None
    answer = view.snapshot.answers.get(handoff.id)
    if answer is None:
        return Timer(view.now, "handoff_ask", f"{handoff.to_agent} is asked about {handoff.task_id}")
    if answer.status not in FINISHED:
        return None
    return Timer(view.now, "handoff_return", f"{answer.id} is {answer.status}")


def _return_due(handoff: Handoff, window: int) -> int:
    """The end of the window, then a step of the backoff after the reminder, then a longer one after each resend."""
    if handoff.resends:
        assert handoff.resent_at is not None
        return millis(handoff.resent_at) + (BACKOFF_MS << handoff.resends)
    if handoff.reminded_at is not None:
        return millis(handoff.reminded_at) + BACKOFF_MS
    return millis(handoff.answered_at or handoff.timestamp) + window


def _since(handoff: Handoff) -> int:
    """When the receiver was last told of it."""
    return millis(handoff.resent_at or handoff.timestamp)


def _ack_ms(seat: Seat | None) -> int | None:
    """How long the agent has to acknowledge; None where nobody can expect it soon."""
    if seat is None or seat.ack_ms is not None:
        return seat.ack_ms if seat is not None else None
    return ACKNOWLEDGED_MS if seat.kind in STARTED else None
