"""The context of a call: the environment that it is made in, its caller, and the lookup of tasks by short IDs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from aof.errors import AmbiguousId, Call, TaskNotFound
from aof.kernel import dispatcher, identity, model, unit_of_work
from aof.kernel.model import FINISHED, is_part, is_task_id, matching_ids, split_task_id, task_of_run
from aof.org import chart_in_force
from aof.queries import read_models
from aof.tasks import templates as tasks_templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from aof.kernel.commands import OnTask
    from aof.kernel.identity import Identity
    from aof.kernel.model import Policy
    from aof.kernel.ports import Notifier, Orphans, Trust
    from aof.kernel.unit_of_work import Done
    from aof.org.model import Gate
    from aof.portable.operations import PortableService
    from aof.store.directory import GatesSource, OrgSource, ProjectFiles, Whereabouts, WorkflowSource
    from aof.store.port import Clock, Store
    from aof.tasks.model import Task


_FIELDS = ("actor", "run", "secret", "known", "run_of", "conversation", "keeps")


class Environment:
    """Store, clock and policy, and whatever else the entry point has; the parts made from them are made once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: Policy,
        *,
        org: OrgSource | None = None,
        notifier: Notifier | None = None,
        workflows: WorkflowSource | None = None,
        orphans: Orphans | None = None,
        trust: Trust | None = None,
        project: ProjectFiles | None = None,
        gates: GatesSource | None = None,
        place: Whereabouts | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.policy = policy
        self.org = org
        self.notifier = notifier
        self.workflows = workflows
        self.orphans = orphans
        self.trust = trust
        self.project = project
        self.gates = gates
        self.place = place
        self._with_gates: tuple[Policy, tuple[Gate, ...], Policy] | None = None

    def gates_in_force(self) -> tuple[Gate, ...]:
        """The gates of the session charter; none where there is no charter."""
        return self.gates.gates() if self.gates is not None else ()

    def with_gates(self, policy: Policy) -> Policy:
        """The policy with the gates in force."""
        gates = self.gates.gates() if self.gates is not None else ()
        if not gates:
            return policy
        known = self._with_gates
        if known is None or known[0] is not policy or known[1] is not gates:
            known = self._with_gates = (policy, gates, policy.but(gates=gates))
        return known[2]

    def policy_for_edits(self) -> Policy:
        """The policy that decides what people do to the files."""
        return self.with_gates(self.chart.readable_policy())

    @cached_property
    def chart(self) -> chart_in_force.ChartInForce:
        """The org chart as decisions and lists see it."""
        return chart_in_force.ChartInForce(self.org, self.policy, self.store.health)

    @cached_property
    def templates(self) -> tasks_templates.Templates:
        """The workflow templates."""
        return tasks_templates.Templates(self.workflows)

    @cached_property
    def lookup(self) -> Lookup:
        """Finds tasks by their IDs, or by parts of them."""
        return Lookup(self.store, self.clock, self.policy_for_edits)

    @cached_property
    def read_models(self) -> read_models.ReadModels:
        """Lists, and one task with everything that belongs to it."""
        return read_models.ReadModels(self.store, self.clock, self.policy, self.chart, self.lookup)

    @cached_property
    def portable(self) -> PortableService:
        """Everything in the words of the agent task contract; what it has folded is kept for all callers."""
        from aof.portable import operations as portable_operations

        return portable_operations.PortableService(self)


class Principal:
    """The caller. `known` is what a surface knows of it; otherwise the `secret` of this process identifies it.

    `run_of` tells the run of a caller that may hold several tasks. `conversation` names the session or context that its
    calls belong to, where the surface was told one. `keeps` says that what it begins to run outlives its session.
    """

    __slots__ = _FIELDS

    def __init__(
        self,
        actor: str,
        run: str | None = None,
        *,
        secret: str | None = None,
        known: Identity | None = None,
        run_of: Callable[[str], str | None] | None = None,
        conversation: str | None = None,
        keeps: bool = False,
    ) -> None:
        self.actor = actor
        self.run = run
        self.secret = secret or None
        self.known = known
        self.run_of = run_of
        self.conversation = conversation
        self.keeps = keeps

    def but(self, **changes: Any) -> Self:
        """The same caller, except for these."""
        fields = {name: getattr(self, name) for name in _FIELDS} | changes
        return type(self)(fields.pop("actor"), **fields)

    def as_run(self, secret: str) -> Self:
        """The same caller, working for the run that the secret belongs to."""
        return self.but(secret=None, known=identity.Identity(secret=secret, behalf=self.actor))

    def as_service(self) -> Self:
        """The service that looks after everybody's runs."""
        return self.but(secret=None, known=identity.SERVICE)

    def passing_on(self, agent: str) -> Self:
        """The service, which passes on what a worker of this agent has printed."""
        return self.but(secret=None, known=identity.Identity(agent=agent, trusted=True))

    def is_default(self, place: Whereabouts | None) -> bool:
        """Whether nobody named the caller, so that its name is that of the operating system's user."""
        return place is not None and place.actor_from == "user" and place.actor == self.actor

    @property
    def identity(self) -> Identity | None:
        """What is known of the caller; None where nothing is."""
        if self.known is None and self.secret is not None:
            self.known = identity.Identity(secret=self.secret)
        return self.known


class CallContext:
    """One call: what there is, who asks, and the way of its commands. The first argument of every operation."""

    def __init__(self, environment: Environment, principal: Principal) -> None:
        self.environment = environment
        self.principal = principal

    @property
    def actor(self) -> str:
        """The name of the caller."""
        return self.principal.actor

    @cached_property
    def authentication(self) -> identity.Authentication:
        """Who the caller is, and for whom it may speak."""
        return identity.Authentication(self.environment, self.principal)

    @cached_property
    def dispatcher(self) -> dispatcher.Dispatcher:
        """The way of every command."""
        return dispatcher.Dispatcher(self.environment, self.principal, self.authentication)

    def dispatch(self, command: OnTask, *, expect_rev: int | None = None) -> Done:
        """Carry out what the caller wants, if the task still has the revision that the caller has seen."""
        if expect_rev is not None:
            command = msgspec.structs.replace(command, expect_rev=expect_rev)
        return self.dispatcher.dispatch(command)


_EXACT = "="  # in front of an ID: no task that only had it elsewhere
_CONSIDERED = 500  # matches that are put in order
_SHOWN = 10  # matches that an ambiguous part is answered with


class Lookup:
    """Finds tasks by what a caller wrote: a full ID, or a part of one."""

    def __init__(self, store: Store, clock: Clock, policy: unit_of_work.PolicyOf) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy

    def resolve(self, part: str) -> str:
        """The full ID that a part of one stands for."""
        if type(part) is str and is_task_id(part) and not self._store.aliases():
            return part  # as most callers have it
        asked = _text(part)
        exact = asked.startswith(_EXACT)
        part = self._numbered(_as_meant(asked.removeprefix(_EXACT)))
        renumbered = {} if exact else self._renumbered(part)
        if is_task_id(part) and not renumbered:
            return part
        found = self._store.ids(part) if is_part(part) else ()
        if renumbered:
            found = tuple(sorted({*found, *renumbered}, key=split_task_id))
        if len(found) == 1:
            return found[0]
        if renumbered:
            raise _either(part, found, renumbered)
        if not found:
            said = f"there is no task {asked[:80]!r}"
            raise TaskNotFound(said, "list what there is", Call("list", {}), asked=asked[:80])
        likely = self._likely(found)
        hint = f"use more of the ID, such as '{likely[0].removeprefix('TASK-')}'"
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        shown = ", ".join(likely[:_SHOWN]) + more
        raise AmbiguousId(f"{part!r} stands for {len(found)} tasks: {shown}", hint, matches=likely)

    def _numbered(self, part: str) -> str:
        """The part, with the zeros that people leave out of a number, where a task has that number."""
        padded = part.zfill(3)
        short = part.isascii() and part.isdigit() and padded != part
        return padded if short and (self._store.ids(padded) or self._renumbered(padded)) else part

    def _renumbered(self, part: str) -> dict[str, str]:
        """The tasks that had an ID like this where they were made, each with that ID."""
        aliases = self._store.aliases()
        if not aliases or not is_part(part):
            return {}
        return {task: old for old in matching_ids(part, sorted(aliases)) for task in aliases[old]}

    def _likely(self, found: Sequence[str]) -> list[str]:
        """The same IDs, those of open tasks first, then of today's, then the newest; of many only the newest."""
        newest = found[-_CONSIDERED:]
        finished = {task.id for task in self._store.records(newest) if task.status in FINISHED or task.archived}
        today = model.day(self._clock.now())
        first = [one for one in reversed(newest) if one not in finished]
        last = [one for one in reversed(newest) if one in finished]
        return [one for part in (first, last) for one in sorted(part, key=lambda one: split_task_id(one)[0] != today)]

    def get(self, task_id: str) -> Task:
        """The task as a record; a whole ID, as AOF itself has it, means the task that has it now."""
        given = _text(task_id)
        whole = given if is_task_id(given) else self.resolve(task_id)
        task = unit_of_work.load_task(self._store, self._clock, self._policy, whole)
        if task is None:
            raise TaskNotFound(f"there is no task {task_id}", "list what there is", Call("list", {}), asked=task_id)
        return task


def _either(part: str, found: Sequence[str], renumbered: dict[str, str]) -> AmbiguousId:
    """The refusal of an ID that two clones used: the tasks that it may mean, and how to name each of them."""
    now = [one for one in found if one not in renumbered]
    new = ", ".join(f"{one} (was {renumbered[one]} where it was made)" for one in found if one in renumbered)
    both = f"{', '.join(now)} and {new}" if now else new
    first = f"'{_EXACT}{now[0]}' for the task that has that ID now, or " if len(now) == 1 else ""
    return AmbiguousId(
        f"{part!r} may mean {len(found)} tasks, because two clones used that number: {both}",
        f"write {first}'{next(one for one in found if one in renumbered)}'",
        matches=list(found),
    )


def _text(given: object) -> str:
    """Callers without a type checker may send anything; only text can stand for a task."""
    return given.strip() if isinstance(given, str) else ""


def _as_meant(part: str) -> str:
    """The part as it is written in IDs: people type `#007` and `task-…`, and copy the IDs of runs."""
    part = part.removeprefix("#")
    upper = part.upper()
    # The random part of a run's ID is in lower case.
    task = task_of_run(f"RUN{part[3:].lower()}") if upper.startswith("RUN-") else None
    return task or upper
