"""Operations about handoffs: begin, answer, return, pass on, look up. Must not know which store is in use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

import msgspec

from aof.app.commands.dispatcher import values
from aof.app.handoffs import chain, handoff_results, lookup
from aof.app.handoffs.handoff_results import Handoffs
from aof.app.messages import router
from aof.app.queries import cursors
from aof.core.errors.base import AofError
from aof.core.handoffs.lifecycle import aggregation, answers, forwarding, initiation, returns, timeouts
from aof.core.handoffs.lifecycle.command import refused
from aof.core.handoffs.lifecycle.proposal import HandoffProposal
from aof.core.model.handoffs import record as r
from aof.core.model.handoffs.history import TransferMode
from aof.core.model.ids import is_task_id
from aof.core.model.org_chart import HUMAN, Risk
from aof.core.validation import limits
from aof.ports.lists import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.commands.unit_of_work import Done
    from aof.app.handoffs.handoff_results import StartedHandoff, TakenHandoff
    from aof.core.handoffs.lifecycle.aggregation import Group
    from aof.core.handoffs.lifecycle.command import OnHandoff
    from aof.core.model.handoffs.record import Handoff


class HandoffService:
    """Control, context and responsibility passing from one agent to another."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def handoff_new(
        self,
        *,
        type: str,  # noqa: A002 - the name of the field
        task_id: str,
        reason: str,
        from_agent: str | None = None,
        to: Sequence[str] = (),
        rationale: str = "",
        risk: str = "low",
        timeout: float | str | None = None,
        on_timeout: str = "retry",
        capabilities: Sequence[Any] = (),
        autonomy_budget: int | None = None,
        aggregation: str | None = None,
        no_return: Sequence[str] = (),
        wait: bool | None = None,
        segment_complete: bool = False,
        history: Sequence[Any] = (),
        transfer_mode: str | None = None,
        max_messages: int | None = None,
        include: dict[str, bool] | None = None,
        summary: str | None = None,
        variables: dict[str, Any] | None = None,
        artifacts: Sequence[Any] = (),
        coordinate: bool = False,
        budget: float | None = None,
        deadline: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> StartedHandoff:
        """Hand a task over: `sequential`, `delegation`, `broadcast` or `escalation`, from one agent to another."""
        proposal = {
            "type": type,
            "to": list(to),
            "reason": reason,
            "rationale": rationale,
            "risk": risk,
            "timeout": _duration(timeout),
            "on_timeout": on_timeout,
            "capabilities": list(capabilities),
            "autonomy_budget": autonomy_budget,
            "aggregation": aggregation,
            "no_return": list(no_return),
            "wait": wait,
            "segment_complete": segment_complete,
            "history": list(history),
            "transfer": _known(
                transfer_mode=transfer_mode, max_messages=max_messages, include=include, summary=summary
            ),
            "coordinate": coordinate,
            "variables": variables or {},
            "artifacts": list(artifacts),
            "budget": budget,
            "deadline": deadline,
        }
        with self._refusals_recorded(initiation.Initiate.operation, task_id, from_agent or actor):
            _choose(proposal | {"transfer_mode": transfer_mode})
            self._environment.lookup.resolve(task_id)
        asked = values(HandoffProposal, proposal)
        known = self._known_receivers()
        done = self._on_task(initiation.Initiate, task_id, run=run, actor=actor, agent=from_agent, proposal=asked)
        begun = [event.payload["handoffId"] for event in done.events if event.type == "handoff.initiated"]
        records = {one.id: one for one in self._records(done)}
        first = [records[name] for name in begun if records[name].forwarded_from is None] or [records[begun[0]]]
        return _started(first, _unseen(first, known))

    def _known_receivers(self) -> set[str]:
        """Who has done something here, or has a host that answers. Ask before the commit: failing must not hide it."""
        chart = self._environment.chart.readable()
        hosted = {one.id for one in chart.agents if one.runner.kind != "pull"} if chart is not None else set()
        return hosted | {HUMAN, *self._environment.store.last_seen()}

    def handoff_accept(
        self,
        handoff_id: str,
        *,
        agent: str | None = None,
        reason: str | None = None,
        estimated_completion: str | None = None,
        actor: str | None = None,
    ) -> TakenHandoff:
        """Take a handoff on. Where the task itself passes to the receiver, this begins its run."""
        given = {"reason": reason, "estimated_completion": estimated_completion}
        handoff, done = self._on_handoff(answers.Accept, handoff_id, agent=agent, actor=actor, **given)
        begun = next((event for event in done.events if event.type == "task.attempt.started"), None)
        if begun is None:
            return handoff_results.TakenHandoff(handoff=handoff)
        return handoff_results.TakenHandoff(
            handoff=handoff,
            run_id=str(begun.run_id),
            epoch=begun.payload["epoch"],
            expires_at=begun.payload["expiresAt"],
            secret=done.secret if done.secret is not None else msgspec.UNSET,
        )

    def handoff_reject(
        self, handoff_id: str, reason: str, *, agent: str | None = None, actor: str | None = None
    ) -> Handoff:
        """Turn a handoff down; the work goes to another agent, or to a person."""
        return self._on_handoff(answers.RejectHandoff, handoff_id, agent=agent, actor=actor, reason=reason)[0]

    def handoff_defer(
        self,
        handoff_id: str,
        reason: str,
        *,
        agent: str | None = None,
        estimated_completion: str | None = None,
        actor: str | None = None,
    ) -> Handoff:
        """Acknowledge a handoff and put the answer off."""
        given = {"reason": reason, "estimated_completion": estimated_completion}
        return self._on_handoff(answers.Defer, handoff_id, agent=agent, actor=actor, **given)[0]

    def handoff_return(
        self,
        handoff_id: str,
        *,
        status: str,
        agent: str | None = None,
        result: Any = None,
        content_type: str | None = None,
        to_agent: str | None = None,
        variables_changed: dict[str, Any] | None = None,
        artifacts_produced: Sequence[Any] = (),
        tokens_consumed: int | None = None,
        notes: str = "",
        actor: str | None = None,
    ) -> Handoff:
        """Bring back what came of an accepted handoff: `success`, `partial`, `failed` or `timeout`."""
        given = {
            "status": status,
            "result": result,
            "content_type": content_type,
            "to_agent": to_agent,
            "variables_changed": variables_changed or {},
            "artifacts_produced": list(artifacts_produced),
            "tokens_consumed": tokens_consumed,
            "notes": notes,
        }
        return self._on_handoff(returns.ReturnResult, handoff_id, agent=agent, actor=actor, **given)[0]

    def handoff_answer(
        self,
        handoff_id: str,
        text: str,
        *,
        status: str = "success",
        agent: str | None = None,
        actor: str | None = None,
    ) -> Handoff:
        """Answer a handoff as a person: take it on and bring back the answer in one step."""
        given = {"text": text, "status": status}
        return self._on_handoff(returns.AnswerHandoff, handoff_id, agent=agent, actor=actor, **given)[0]

    def handoff_escalate(
        self,
        handoff_id: str,
        rationale: str,
        *,
        to_agent: str | None = None,
        agent: str | None = None,
        actor: str | None = None,
    ) -> Handoff:
        """Pass an escalation on to the next level, with one's own assessment. Answers with the new handoff."""
        given = {"rationale": rationale, "to_agent": to_agent}
        old = self._on_handoff(forwarding.Escalate, handoff_id, agent=agent, actor=actor, **given)[0]
        return self.handoff_show(old.forwarded_to or old.id)

    def handoff_reroute(
        self,
        handoff_id: str,
        reason: str,
        *,
        to_agent: str | None = None,
        agent: str | None = None,
        actor: str | None = None,
    ) -> Handoff:
        """Send an unanswered handoff to another agent; without a name, routing chooses. Answers with the new one."""
        given = {"reason": reason, "to_agent": to_agent}
        old = self._on_handoff(forwarding.Reroute, handoff_id, agent=agent, actor=actor, **given)[0]
        return self.handoff_show(old.forwarded_to or old.id)

    def handoff_withdraw(
        self, handoff_id: str, reason: str, *, agent: str | None = None, actor: str | None = None
    ) -> Handoff:
        """Take back a handoff that is not over; nobody else is asked."""
        return self._on_handoff(timeouts.Withdraw, handoff_id, agent=agent, actor=actor, reason=reason)[0]

    def handoff_resend(
        self, handoff_id: str, reason: str | None = None, *, agent: str | None = None, actor: str | None = None
    ) -> Handoff:
        """Send a handoff to the same agent again, at most three times."""
        return self._on_handoff(timeouts.Resend, handoff_id, agent=agent, actor=actor, reason=reason)[0]

    def handoff_show(self, handoff_id: str) -> Handoff:
        """One handoff, by its ID or the beginning of it."""
        return lookup.HandoffLookup(self._environment.store).get(handoff_id)

    def handoff_list(
        self,
        *,
        task: str | None = None,
        from_agent: str | None = None,
        to_agent: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Handoffs:
        """The handoffs, oldest first: of one task (as child or as parent), from or to one agent, in one state.

        The state `open` stands for every one that something is still to come of.
        """
        task_id = self._environment.lookup.resolve(task) if task is not None else None
        found = tuple(
            handoff
            for handoff in self._environment.store.handoffs()
            if task_id in (None, handoff.task_id, handoff.parent_task_id)
            and from_agent in (None, handoff.from_agent)
            and to_agent in (None, handoff.to_agent)
            and (state in (None, handoff.state) or (state == "open" and handoff.is_open))
        )
        page, following = cursors.paged("handoff_list", found, _place, limit=limit, cursor=cursor)
        return Handoffs(page, total=len(found), next_cursor=following)

    def handoff_inbox(self, agent: str) -> tuple[Handoff, ...]:
        """The open handoffs that are addressed to an agent, oldest first; a person's are those to `human`, too."""
        store = self._environment.store
        handed = store.find(Query(open_handoffs=True)).tasks
        person = agent in self._environment.policy.maintainers
        names = (agent, HUMAN) if person else (agent,)
        return tuple(one for one in store.handoffs(handed) if one.is_open and one.to_agent in names)

    def handoff_group(self, group_id: str) -> Group:
        """What the returns of a broadcast come to; any of its handoffs stands for it too."""
        every = self._environment.store.handoffs()
        part = group_id.strip().lower()
        found = [one for one in every if (one.broadcast_group_id or "").startswith(part) and one.broadcast_group_id]
        if not part or len({one.broadcast_group_id for one in found}) != 1:
            member = self.handoff_show(group_id)
            found = [one for one in every if one.broadcast_group_id == member.broadcast_group_id]
            if member.broadcast_group_id is None:
                raise lookup.missing(group_id)
        return aggregation.aggregated(found)

    def handoff_chain(self, task_id: str) -> dict[str, Any]:
        """All handoffs of a task and of those below it, as a sequence diagram in Mermaid."""
        full = self._environment.lookup.resolve(task_id)
        return chain.drawn(full, self.handoff_list(task=full))

    @contextmanager
    def _refusals_recorded(self, operation: str, task_id: str, agent: str | None) -> Iterator[None]:
        """Record why there is no command at all; what a command refuses, it records itself."""
        try:
            yield
        except AofError as refusal:
            here, actor = self._environment, self._dispatcher.actor
            draft = refused(operation, task_id if is_task_id(task_id) else "", agent or actor, refusal)
            router.record(here.store, here.clock, draft, actor)
            raise

    def _on_task(self, kind: type[initiation.Initiate], task_id: str, /, **given: Any) -> Done:
        done = self._dispatcher.on_task(kind, task_id, **given)
        if done.decision.refusal is not None:
            raise done.decision.refusal
        return done

    def _on_handoff(self, kind: type[OnHandoff], handoff_id: str, /, **given: Any) -> tuple[Handoff, Done]:
        """Carry out a command about a handoff that there is, and tell how it stands afterwards."""
        known = lookup.HandoffLookup(self._environment.store).get(handoff_id)
        command = self._dispatcher.command(kind, {"task_id": known.task_id, "handoff_id": known.id, **given})
        done = self._dispatcher.dispatch(command)
        if done.decision.refusal is not None:
            raise done.decision.refusal
        return self.handoff_show(known.id), done

    def _records(self, done: Done) -> tuple[Handoff, ...]:
        assert done.task is not None
        return self._environment.store.handoffs((done.task,))


def _choose(given: dict[str, Any]) -> None:
    """Refuse a word that is none of those to choose from."""
    kinds = {"type": r.HandoffType, "on_timeout": r.OnTimeout, "aggregation": r.Aggregation}
    kinds |= {"risk": Risk, "transfer_mode": TransferMode}
    for name, kind in kinds.items():
        if isinstance(given[name], str) and (problem := limits.choice(name, given[name], get_args(kind))):
            raise problem


def _known(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _duration(given: float | str | None) -> str | None:
    """A duration as the record has it; a plain number counts seconds."""
    plain = isinstance(given, int | float) or (isinstance(given, str) and given.replace(".", "", 1).isdigit())
    return f"{given}s" if plain else None if given is None else str(given)


def _unseen(begun: Sequence[Handoff], known: Collection[str]) -> list[str]:
    """A warning of receivers that have to answer by themselves and have done nothing here so far."""
    asked = dict.fromkeys(one.to_agent for one in begun if one.state in r.UNANSWERED)
    unseen = [name for name in asked if name not in known]
    has = "has" if len(unseen) == 1 else "have"
    return [f"{', '.join(unseen)} {has} not been seen yet, and {has} to accept"] if unseen else []


def _started(begun: list[Handoff], also: Sequence[str]) -> StartedHandoff:
    first = begun[0]
    warnings = (*(warning for one in begun for warning in one.warnings), *also)
    group = first.broadcast_group_id
    return handoff_results.StartedHandoff(
        handoff_id=first.id,
        state=first.state,
        task_id=first.task_id,
        to_agent=first.to_agent,
        forwarded_to=first.forwarded_to or msgspec.UNSET,
        broadcast_group_id=group or msgspec.UNSET,
        handoff_ids=tuple(one.id for one in begun) if group else msgspec.UNSET,
        warnings=warnings or msgspec.UNSET,
    )


def _place(handoff: Handoff) -> tuple[str, ...]:
    """The place of a handoff in the order of their beginnings."""
    return handoff.timestamp, handoff.task_id, f"{handoff.number:06d}", handoff.id
