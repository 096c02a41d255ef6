"""Documents as they are read: caught up with the log, under their locks. Must not know any single document."""

from __future__ import annotations

from aof.documents.projection import lock_of
from aof.kernel import unit_of_work
from aof.store.port import Scope, ScopeTooNarrow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import Environment
    from aof.kernel.model import Policy


def policy_of(environment: Environment) -> Policy:
    """The settings, with the chart in force; a chart that cannot be used keeps nobody from reading."""
    chart = environment.chart.readable()
    return environment.policy if chart is None else environment.policy.but(org=chart)


def texts(environment: Environment, name: str, *paths: str, policy: Policy | None = None) -> dict[str, str]:
    """The text of files, after the document of that name has caught up, under a policy that the caller may know."""
    return _caught_up(environment, frozenset({lock_of(name)}), paths, policy)[1]


def noted(environment: Environment, name: str, *paths: str) -> tuple[str, dict[str, str]]:
    """The note about the document of that name once it has caught up, and the text of files."""
    return _caught_up(environment, frozenset({lock_of(name)}), paths)


def follow_all(environment: Environment) -> None:
    """Let every document catch up, in one unit of work."""
    from aof.documents import catalogue

    _caught_up(environment, catalogue.LOCKS, ())


def _caught_up(
    environment: Environment, names: frozenset[str], paths: tuple[str, ...], policy: Policy | None = None
) -> tuple[str, dict[str, str]]:
    policy = policy or policy_of(environment)
    while True:
        try:
            with environment.store.unit(Scope(names=names)) as unit:
                notes = unit_of_work.follow(unit, names, policy)
                return "".join(notes), {path: unit.document(path) for path in paths}
        except ScopeTooNarrow:
            continue  # somebody has deleted the lock meanwhile


def foreseen(environment: Environment, name: str, *paths: str) -> dict[str, str]:
    """The text that files would have after the document of that name caught up; nothing is locked or written."""
    from aof.documents import catalogue

    (projection,) = catalogue.locked_documents({lock_of(name)}, policy_of(environment))
    with environment.store.unit(Scope()) as unit:
        return unit.foreseen(projection, paths)
