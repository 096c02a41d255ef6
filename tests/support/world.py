"""A world in memory that drives the core as a store would: ask for needs, load, decide, number, evolve.

What `needs` did not ask for is not loaded, so that looking at it fails. Every event goes through JSON, and after every
commit `check` states what must hold of any world. Must not know a rule that it does not check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from aof.errors import AofError
from aof.kernel import commands
from aof.kernel.commands import Decision, Needs, Records, Verdict
from aof.kernel.decide import decide
from aof.kernel.events import Draft, Event, is_remark
from aof.kernel.evolve import evolve
from aof.kernel.model import FAILED, FINISHED, Policy, iso, millis, run_place, status_allows, task_id
from aof.kernel.needs import needs
from aof.runs.model import Heartbeat, Run, RunResult, evolve_result, evolve_run
from aof.tasks.fields import PLAIN
from aof.tasks.graph import Normalized, normalized_status, readiness
from aof.tasks.model import Task
from aof.workflows.model import leases
from tests.support.present import present

SECOND = 1_000
MINUTE = 60 * SECOND
MONDAY = millis("2026-03-02T09:00:00Z")


class World:
    """Tasks, runs, results, heartbeats and the log of one imaginary data directory."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.now = MONDAY
        self.events: list[Event] = []
        self.tasks: dict[str, Task] = {}
        self.freed: set[str] = set()
        self.runs: dict[str, dict[str, Run]] = {}
        self.results: dict[str, RunResult | None] = {}
        self.heartbeats: dict[str, Heartbeat] = {}
        self._made = 0

    # --- sentences

    def create(self, title: str = "Something to do", *, actor: str = "pm", **fields: Any) -> str:
        """Create a task and give its ID."""
        plain = {row.key: fields.pop(row.name) for row in PLAIN if row.name in fields}
        given: dict[str, Any] = {name: tuple(part) if isinstance(part, list) else part for name, part in fields.items()}
        given |= {"fields": plain} if plain else {}
        decision = self.do(commands.Create(actor=actor, task_id=self.next_id(), title=title, **given))
        return decision.replayed or decision.drafts[0].task_id

    def next_id(self) -> str:
        """An ID that nobody has used."""
        self._made += 1
        return task_id("2026-03-02", self._made)

    def claim(self, task: str, agent: str = "ada", **more: Any) -> str:
        """Claim a task and give the run's ID."""
        self.do(commands.Claim(actor=agent, task_id=task, **more))
        return self.lease_run(task)

    def lease_run(self, task: str) -> str:
        """The run that holds the task now."""
        lease = self.tasks[task].lease
        assert lease is not None, f"{task} is not running"
        return lease.run_id

    def act(self, kind: type[commands.OnTask], task: str, actor: str = "pm", /, **fields: Any) -> Decision:
        """Give any command about a task; it must be accepted."""
        return self.do(kind(actor=actor, task_id=task, **fields))

    def refuse(self, kind: type[commands.OnTask], task: str, actor: str = "pm", /, **fields: Any) -> AofError:
        """Give any command about a task; it must be refused, with a code and a hint, and change nothing."""
        return self.refused(kind(actor=actor, task_id=task, **fields))

    def report(self, task: str, outcome: str, *blockers: str) -> None:
        """The run reports a result and vanishes before its session ends, as a completion message does."""
        lease = present(self.tasks[task].lease)
        result = {"agentId": lease.agent, "outcome": outcome, "blockers": list(blockers)}
        draft = Draft(type="task.completed", task_id=task, run_id=lease.run_id, payload={"result": result})
        self.commit(commands.RecordHeartbeat(actor=lease.agent, task_id=task), Decision(drafts=(draft,)))

    def expire(self, task: str) -> Decision:
        """Let the lease run out, and recover the task."""
        self.later(self.policy.lease_ttl_ms)
        return self.act(commands.Expire, task, "aof")

    def later(self, millis: int) -> None:
        """Let time pass."""
        self.now += millis

    def into(self, status: str, **fields: Any) -> str:
        """A new task that has come to that status in the shortest way."""
        task = self.create(status="backlog" if status == "backlog" else "ready", **fields)
        match status:
            case "in-progress":
                self.claim(task)
            case "review":
                self.claim(task)
                self.act(commands.Complete, task, "ada")
            case "blocked":
                self.act(commands.Block, task, reason="in the way")
            case "done":
                self.act(commands.Complete, task, "ada")
                self.act(commands.Approve, task)
            case "cancelled":
                self.act(commands.CancelTask, task)
            case "deadletter":
                self.claim(task)
                self.act(commands.Fail, task, "ada", retryable=False)
        assert self.tasks[task].status == status
        return task

    # --- what is to be seen

    def status(self, task: str) -> str:
        """The status of a task."""
        return self.tasks[task].status

    def normalized(self, task: str) -> Normalized:
        """Its normalized status now."""
        return normalized_status(self.tasks[task], self.heartbeats.get(task), self.now)

    def log(self, task: str, kind: str) -> list[Event]:
        """The events of one kind about a task."""
        return [event for event in self.events if event.task_id == task and event.type == kind]

    def path(self, task: str) -> list[str]:
        """The statuses that a task went to, in order."""
        return [event.payload["to"] for event in self.log(task, "task.transitioned")]

    def why_not(self, task: str) -> AofError | None:
        """Why the task cannot be run now; None when it can."""
        records = self.load(commands.Claim(actor="anyone", task_id=task))
        return readiness(records, self.tasks[task], self.now)

    # --- the driver

    def do(self, command: commands.OnTask) -> Decision:
        """Decide and commit."""
        verdict = self.verdict(command)
        assert not isinstance(verdict, AofError), f"{verdict.code}: {verdict}"
        self.commit(command, verdict)
        return verdict

    def refused(self, command: commands.OnTask) -> AofError:
        """Decide, and see a refusal that helps."""
        verdict = self.verdict(command)
        if isinstance(verdict, Decision) and verdict.refusal is not None:  # it is on record, and still a refusal
            self.commit(command, verdict)
            verdict = verdict.refusal
        assert isinstance(verdict, AofError), f"accepted: {verdict}"
        assert verdict.code
        assert verdict.hint
        assert len(verdict.message) < 1_000, "a refusal does not repeat what it was flooded with"
        return verdict

    def verdict(self, command: commands.OnTask) -> Verdict:
        """What the core says, twice: the same input gives the same answer."""
        records = self.load(command)
        first, second = decide(records, command, self.now), decide(records, command, self.now)
        if isinstance(first, AofError):
            assert isinstance(second, AofError)
            assert (first.code, first.message, first.hint) == (second.code, second.message, second.hint)
        else:
            assert isinstance(second, Decision)
            assert str(first.refusal) == str(second.refusal)
            assert msgspec.structs.replace(first, refusal=None) == msgspec.structs.replace(second, refusal=None)
        return first

    def load(self, command: commands.OnTask) -> Records:
        """Exactly what `needs` asks for, until it asks for nothing new."""
        records = Records(policy=self.policy)
        wanted = Needs()
        for _ in range(100):
            asked = needs(command, records)
            if asked == wanted:
                return records
            wanted = asked
            self._fill(records, wanted)
        raise AssertionError("needs never comes to an end")

    def _fill(self, records: Records, wanted: Needs) -> None:
        records.tasks.update({key: self.tasks.get(key) for key in wanted.write | wanted.read})
        records.heartbeats.update({key: self.heartbeats.get(key) for key in wanted.heartbeats})
        records.results.update({key: self.results.get(key) for key in wanted.results})
        records.above.update({key: self._above(key) for key in wanted.above})
        records.children.update({key: self._where("parent_id", key) for key in wanted.children})
        for key in wanted.trees:
            records.children.update(self._tree(key))
        records.dependents.update({key: self.dependents(key) for key in wanted.dependents})
        records.reachable.update({key: self._edges_from(key) for key in wanted.reachable})
        records.resource_holders.update({key: self._holders(key) for key in wanted.resources})
        records.held.update({key: self._held(key) for key in wanted.agents})
        records.key_owners.update({key: self._key_owner(key) for key in wanted.keys})
        if wanted.file_locks:
            records.file_locks.update({task.id: task.locks for task in self.tasks.values() if task.locks})

    def _where(self, field: str, value: str) -> tuple[str, ...]:
        return tuple(task.id for task in self.tasks.values() if getattr(task, field) == value)

    def _above(self, task_id: str) -> tuple[str, ...]:
        found: list[str] = []
        task = self.tasks.get(task_id)
        while task is not None and task.parent_id is not None and task.parent_id not in found:
            found.append(task.parent_id)
            task = self.tasks.get(task.parent_id)
        return tuple(found)

    def _tree(self, root: str) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        waiting = [root]
        for current in waiting:
            if current not in found:
                found[current] = self._where("parent_id", current)
                waiting += found[current]
        return found

    def dependents(self, blocker: str) -> tuple[str, ...]:
        """Who waits for the task."""
        return tuple(task.id for task in self.tasks.values() if blocker in task.depends_on)

    def _edges_from(self, start: str) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        queue = [start]
        for current in queue:
            if current not in found and current in self.tasks:
                found[current] = self.tasks[current].depends_on
                queue += found[current]
        return found

    def _holders(self, resource: str) -> tuple[str, ...]:
        return tuple(task.id for task in self.tasks.values() if leases(task) and task.resource == resource)

    def _held(self, agent: str) -> tuple[str, ...]:
        return tuple(task.id for task in self.tasks.values() if any(lease.agent == agent for lease in leases(task)))

    def _key_owner(self, key: str) -> str | None:
        return next((task.id for task in self.tasks.values() if task.key is not None and task.key.value == key), None)

    def commit(self, command: commands.OnTask, decision: Decision) -> None:
        """Number the events, take them through JSON, and apply them."""
        writable = needs(command, self.load(command)).write
        for number, draft in enumerate(decision.drafts, start=1):
            assert draft.task_id in writable, f"{draft.type} writes {draft.task_id}, which was not locked for it"
            event = self._event(command, decision, draft, (number, len(decision.drafts)))
            self._chained(event)
            self._note_freedom(command, event)
            self.events.append(event)
            if is_remark(event):
                continue
            self.tasks[event.task_id] = evolve(self.tasks.get(event.task_id), event)
            at = run_place(event.task_id, event.payload.get("hop"))
            self.results[at] = evolve_result(self.results.get(at), event)
            self._evolve_run(event)
        if decision.heartbeat is not None:
            self.heartbeats[run_place(decision.heartbeat.task_id, decision.heartbeat.hop)] = decision.heartbeat
        for touched in {draft.task_id for draft in decision.drafts}:
            self.check(touched)

    def _event(self, command: commands.OnTask, decision: Decision, draft: Draft, place: tuple[int, int]) -> Event:
        event = Event(
            seq=len(self.events) + 1,
            type=draft.type,
            timestamp=iso(self.now),
            actor=command.actor,
            agent=decision.agent or command.agent,
            task_id=draft.task_id,
            run_id=draft.run_id,
            payload=draft.payload,
            commit=place,
        )
        return msgspec.json.decode(msgspec.json.encode(event), type=Event)

    def _evolve_run(self, event: Event) -> None:
        runs = self.runs.setdefault(event.task_id, {})
        if event.run_id is None or not event.type.startswith("task.attempt."):
            return
        if event.type == "task.attempt.started":
            assert event.run_id not in runs, f"{event.run_id} was given twice"
        else:
            assert runs[event.run_id].ended_at is None, f"{event.run_id} ended twice"
        run = present(evolve_run(runs.get(event.run_id), event))
        runs[event.run_id] = run

    # --- what holds of every world

    def _chained(self, event: Event) -> None:
        """A status change begins where the task is, and follows the table; only a retry leaves what is finished."""
        if event.type != "task.transitioned":
            return
        before, after = event.payload["from"], event.payload["to"]
        assert before == self.tasks[event.task_id].status, f"{event} does not begin where the task is"
        assert status_allows(before, after) or (before in FINISHED and after == "ready"), f"{before} → {after}"

    def check(self, task_id: str) -> None:
        """What holds of every task between two commits."""
        task = self.tasks[task_id]
        runs = self.runs[task_id].values()
        open_runs = [run.run_id for run in runs if run.ended_at is None]
        stopped = task.cancel is not None and task.cancel.stopped
        held = leases(task)
        if not task.workflow or not stopped:
            assert bool(held) == (task.status == "in-progress"), "a lease is held exactly while it runs"
        assert (task.blocked is not None) == (task.status == "blocked")
        assert (task.ended_at is not None) == (task.status in FINISHED)
        assert task.retry.attempts == len(runs) == len(self.log(task_id, "task.attempt.started"))
        for hop in {run.hop for run in runs}:
            epochs = [run.epoch for run in runs if run.hop == hop]
            assert epochs == list(range(1, len(epochs) + 1)), "every lease raises the epoch"
        assert sorted(open_runs) == sorted(lease.run_id for lease in held if task.workflow or not stopped)
        assert {lock.run_id for lock in task.locks} <= set(open_runs), "the dead hold no lock"
        assert msgspec.json.decode(msgspec.json.encode(task), type=Task) == task, "a record comes back from its file"
        assert task_id not in self._reached(task_id), "a task waits for itself"
        self._check_waiting(task)

    def _note_freedom(self, command: commands.OnTask, event: Event) -> None:
        """Who was taken out of `blocked` by hand is free until blocked again."""
        if event.type != "task.transitioned":
            return
        if event.payload["to"] == "blocked":
            self.freed.discard(event.task_id)
        elif event.payload["from"] == "blocked" and isinstance(command, commands.Unblock | commands.Update):
            self.freed.add(event.task_id)

    def _check_waiting(self, task: Task) -> None:
        """Nobody waits silently; only who was freed by hand may stand in ready beside a dead dependency."""
        if task.status == "ready" and (reason := self.why_not(task.id)) is not None:
            assert reason.message
            assert reason.hint
        pending = task.cancel is not None and task.status not in FINISHED
        if task.status in ("backlog", "ready") and not pending and task.id not in self.freed:
            dead = [edge for edge in task.depends_on if self.tasks[edge].status in FAILED]
            assert not dead, f"{task.id} is {task.status} and waits for {dead} for ever"
        if pending:
            assert any(self._stoppable(below) for below in self._below(task.id)), f"nothing will settle {task.id}"
        if task.status == "cancelled":
            assert all(self.tasks[below].status in FINISHED for below in self._below(task.id))

    def _stoppable(self, task_id: str) -> bool:
        """Whether a host still has to stop a worker here."""
        task = self.tasks[task_id]
        stopped = task.cancel is not None and task.cancel.stopped
        return any(lease.worker != "pull" for lease in leases(task)) and not stopped

    def _below(self, task_id: str) -> Iterator[str]:
        queue = [task_id]
        for current in queue:
            yield current
            queue += [child for child in self._where("parent_id", current) if child not in queue]

    def _reached(self, task_id: str) -> set[str]:
        return {edge for edges in self._edges_from(task_id).values() for edge in edges}

    def assert_replay_is_the_same(self) -> None:
        """The log alone gives the same tasks, runs and results; and so does replaying what was applied already."""
        replayed: dict[str, Task] = {}
        for event in self.events:
            replayed[event.task_id] = evolve(replayed.get(event.task_id), event)
        assert replayed == self.tasks
        for event in self.events:
            replayed[event.task_id] = evolve(replayed[event.task_id], event)
        assert replayed == self.tasks
