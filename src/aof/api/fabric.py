"""The fabric: everything that can be asked of one data directory, as methods of one object.

The methods of the operations are in `facade`, which is generated; each calls a service, made when it is first asked
for. Must not know which store or surface is in use.
"""

from __future__ import annotations

from functools import cached_property
from types import TracebackType

from aof.api.facade import Facade
from aof.kernel.arguments import checks_arguments
from aof.kernel.context import CallContext, Environment, Principal
from aof.runs import claimed_run
from aof.runs import operations as runs_operations
from aof.runs import service as runs_service
from aof.tasks import service as tasks_service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from aof.kernel.model import Policy
    from aof.org.model import OrgChart
    from aof.runs.claimed_run import ClaimedRun, Grant
    from aof.store.port import Clock, Store


class Services(CallContext):
    """What operations are called with, and the services of those that are not functions yet."""

    def expecting(self, rev: int | None) -> Services:
        """The same services for a caller that changes a task only if that still has this revision."""
        return self if rev is None else Services(self.environment, self.principal.but(expect_rev=rev))

    @cached_property
    def tasks(self) -> tasks_service.TaskService:
        """Creating, changing and steering tasks."""
        return tasks_service.TaskService(self.environment, self.dispatcher)

    @cached_property
    def runs(self) -> runs_service.RunService:
        """Claims, reports and ends of runs."""
        return runs_service.RunService(self.environment, self.principal, self.authentication, self.dispatcher)

    @cached_property
    def questions(self) -> runs_operations.QuestionService:
        """Questions of running agents."""
        return runs_operations.QuestionService(self.environment, self.dispatcher)


@checks_arguments("fabric")
class Fabric(Facade):
    """Everything that can be asked of one data directory. `actor` is who calls unless a call says otherwise.

    `store` is where everything is kept, `parts` are the other parts of an `Environment`. `services` is for the programs
    that AOF itself consists of.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: Policy,
        actor: str,
        run: str | None = None,
        *,
        secret: str | None = None,
        **parts: Any,
    ) -> None:
        environment = Environment(store, clock, policy, **parts)
        self.store = store
        self.services = Services(environment, Principal(actor, run, secret=secret))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the data directory."""
        self.store.close()

    def now(self) -> int:
        """What time it is for this fabric, in UTC milliseconds."""
        return self.services.environment.clock.now()

    @property
    def org(self) -> OrgChart:
        """The chart in force, an empty one where there is none. Raises UnusableOrgChart."""
        return self.services.environment.chart.whole()

    @property
    def actor(self) -> str:
        """The caller's name, unless a call names another."""
        return self.services.principal.actor

    @property
    def needs_secret(self) -> bool:
        """Whether writes to a run count only with its secret."""
        return self.services.environment.policy.require_secret

    @property
    def binds_callers(self) -> bool:
        """Whether a session, a token or a run is one actor: where there is an org chart, or identity is strict."""
        return self.services.authentication.binds_callers

    def speaks_for_others(self, name: str) -> bool:
        """Whether somebody may act for others at all; for whom, and on which task, is decided with each command."""
        return self.services.authentication.speaks_for_others(name)

    def as_actor(self, actor: str, run: str | None = None) -> Self:
        """The same data, asked by somebody else; closing either closes both. What was proven stays so."""
        return self.on_behalf_of(self.services.principal.but(actor=actor, run=run))

    def as_run(self, secret: str) -> Self:
        """The same data, asked for the run whose secret this is: everything is done as that run's agent."""
        return self.on_behalf_of(self.services.principal.as_run(secret))

    def _held(self, grant: Grant) -> ClaimedRun:
        return claimed_run.ClaimedRun.of(self, grant)

    def on_behalf_of(self, principal: Principal) -> Self:
        """The same data, asked by this caller."""
        view = object.__new__(type(self))
        view.store = self.store
        view.services = Services(self.services.environment, principal)
        return view
