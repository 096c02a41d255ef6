"""The fabric: everything that can be asked of one data directory, as methods of one object.

The methods of the operations are in `facade`: each is a function of its subject, loaded when it is first asked for.
Must not know which store or surface is in use.
"""

from __future__ import annotations

from types import TracebackType

from aof.api.facade import Facade
from aof.kernel.arguments import checks_arguments
from aof.kernel.context import CallContext, Environment, Principal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from aof.kernel.model import Policy
    from aof.org.model import OrgChart
    from aof.store.port import Clock, Store


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
        self.services = CallContext(environment, Principal(actor, run, secret=secret))

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

    def on_behalf_of(self, principal: Principal) -> Self:
        """The same data, asked by this caller."""
        view = object.__new__(type(self))
        view.store = self.store
        view.services = CallContext(self.services.environment, principal)
        return view
