"""What every call is made with: on whose behalf, and the parts that one data directory is served with.

Must not know how a secret arrives or what a command does.
"""

from __future__ import annotations

from functools import cached_property

from aof.app.commands import identity
from aof.app.org import chart_in_force
from aof.app.queries import lookup, read_models
from aof.app.workflows import templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from aof.app.commands.identity import Identity
    from aof.app.portable.service import PortableService
    from aof.core.model.gate import Gate
    from aof.core.model.policy import Policy
    from aof.ports.clock import Clock
    from aof.ports.gates import GatesSource
    from aof.ports.notifier import Notifier
    from aof.ports.org import OrgSource
    from aof.ports.runner import Orphans
    from aof.ports.store import Store
    from aof.ports.trust import Trust
    from aof.ports.workflows import WorkflowSource
    from aof.ports.working_copy import ProjectFiles, Whereabouts

_FIELDS = ("actor", "run", "secret", "known", "run_of", "conversation", "expect_rev", "keeps")


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
        gates = self.gates_in_force()
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
    def templates(self) -> templates.Templates:
        """The workflow templates."""
        return templates.Templates(self.workflows)

    @cached_property
    def lookup(self) -> lookup.Lookup:
        """Finds tasks by their IDs, or by parts of them."""
        return lookup.Lookup(self.store, self.clock, self.policy_for_edits)

    @cached_property
    def read_models(self) -> read_models.ReadModels:
        """Lists, and one task with everything that belongs to it."""
        return read_models.ReadModels(self.store, self.clock, self.policy, self.chart, self.lookup)

    @cached_property
    def portable(self) -> PortableService:
        """Everything in the words of the agent task contract; what it has folded is kept for all callers."""
        from aof.app.portable import service

        return service.PortableService(self)


class Principal:
    """The caller. `known` is what a surface knows of it; otherwise the `secret` of this process identifies it.

    `run_of` tells the run of a caller that may hold several tasks. `conversation` names the session or context that its
    calls belong to, where the surface was told one. `expect_rev` is the revision that the caller has seen of the task
    that it changes. `keeps` says that what it begins to run outlives its session.
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
        expect_rev: int | None = None,
        keeps: bool = False,
    ) -> None:
        self.actor = actor
        self.run = run
        self.secret = secret or None
        self.known = known
        self.run_of = run_of
        self.conversation = conversation
        self.expect_rev = expect_rev
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
