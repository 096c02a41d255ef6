"""Who the caller is: its name and where that comes from, what it may do, and where it works.

Says nothing that proves anything: no secret and no token. Must not know any surface.
"""

from __future__ import annotations

from aof.app.commands import identity
from aof.app.supervision import results
from aof.core.org import rights
from aof.core.runs import authentication

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment, Principal


class CallerService:
    """Tells one caller about itself."""

    def __init__(self, environment: Environment, principal: Principal, asked: identity.Authentication) -> None:
        self._environment = environment
        self._principal = principal
        self._authentication = asked

    def whoami(self) -> results.WhoAmI:
        """Who you are to AOF: name, where it comes from, rights, and the data directory."""
        who, place = self._principal.identity or identity.NOBODY, self._environment.place
        name = identity.name_of(who) or self._principal.actor
        own = authentication.understood(who.secret) if who.secret is not None else None
        chart, maintainers = self._environment.chart.readable(), self._environment.policy.maintainers
        plain = own is None and not who.unproven
        local = place is not None and not who.token
        return results.WhoAmI(
            actor=name,
            source=self._source(who, name),
            run_id=own.run if own is not None else self._principal.run,
            maintainer=plain and name in maintainers,
            roles=tuple(sorted(chart.roles_of.get(name, ()))) if chart is not None else (),
            kind=rights.kind_of(chart, name, maintainers if plain else ()) if chart is not None else None,
            scope=who.scope if who.token else None,
            acts_for_others=plain
            and who.agent is None
            and (not self._authentication.binds_callers or self._authentication.speaks_for_others(name)),
            data_dir=place.data_dir if place is not None and local else None,
            found_by=place.found_by if place is not None and local else None,
            lane=place.lane() if place is not None else None,
            version=place.version if place is not None else None,
            python=place.python if place is not None and local else None,
            format=place.format() if place is not None else None,
        )

    def _source(self, who: identity.Identity, name: str) -> results.Source:
        """What the caller's name comes from."""
        if who.secret is not None:
            return "run"
        if who.token:
            return "token"
        if who.session is not None:
            return "session"
        place = self._environment.place
        return place.actor_from if place is not None and place.actor == name else "given"
