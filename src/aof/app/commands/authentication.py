"""Who a caller is, and for whom it may speak. Must not know which store or surface is in use.

A caller that proves nothing, where nobody asks for proof, loads none of the rules.
"""

from __future__ import annotations

import msgspec

from aof.app.commands import identity
from aof.core.org import impersonation
from aof.core.runs import authentication as proofs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment
    from aof.app.commands.principal import Principal
    from aof.core.model.commands import OnTask


class Authentication:
    """Answers for one principal."""

    def __init__(self, environment: Environment, principal: Principal) -> None:
        self._environment = environment
        self._policy = environment.policy
        self._principal = principal

    @property
    def binds_callers(self) -> bool:
        """Whether a session, a token or a run is one actor: where there is an org chart, or identity is strict."""
        return self._policy.strict or self._environment.chart.readable() is not None

    def speaks_for_others(self, name: str) -> bool:
        """Whether somebody may act for others at all; for whom, and on which task, is decided with each command."""
        chart = self._environment.chart.readable()
        return name in self._policy.maintainers or (chart is not None and impersonation.orchestrates(chart, name))

    def only_name(self) -> str | None:
        """The one actor that the caller is; None where it may speak for others, or where nothing binds it."""
        who = self._principal.identity
        name = identity.name_of(who) if who is not None else None
        if name is not None or not self.binds_callers or (who is not None and who.trusted):
            return name
        name = who.session if who is not None else None
        name = self._principal.actor if name is None and self._policy.strict else name
        return None if name is None or self.speaks_for_others(name) else name

    def session_name(self) -> str | None:
        """The name in the caller's token, secret or session, whatever name a call gives."""
        who = self._principal.identity
        return None if who is None else identity.name_of(who) or who.session

    def refuse_claim_for(self, agent: str) -> None:
        """Refuse a claim for somebody else before anybody looks for a task."""
        name = self.only_name()
        if name is not None and name != agent:
            raise proofs.mismatch(name, agent)

    def stamped(self, command: OnTask) -> OnTask:
        """The command with what its caller has proven; raises where that contradicts what the caller says."""
        asked, who = self._policy.require_secret, self._principal.identity
        if asked or who is not None:
            get = self._environment.lookup.get
            return identity.stamped(get, who or identity.NOBODY, command, asked=asked)
        if self._policy.strict or self._environment.org is not None:
            return msgspec.structs.replace(command, outside=True)
        return command
