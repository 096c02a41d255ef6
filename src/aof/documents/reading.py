"""The documents by name, and how to read one: its text is brought up to date with the log first, under its lock.

Must not know what any single document says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from aof.documents import charter, mailbox, worklog
from aof.documents.projection import LOCK, lock_of
from aof.jobs import rules as jobs_rules
from aof.kernel import unit_of_work
from aof.store.port import Scope, ScopeTooNarrow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.documents.projection import Projection
    from aof.kernel.context import Environment
    from aof.kernel.model import Policy

    Make = Callable[..., Projection]

# Looked up when it is needed: a command runs the module of its own document only.
_DOCUMENTS: dict[str, Callable[[], Make]] = {
    "WORKLOG": lambda: worklog.WorklogDocument,
    "MAILBOX": lambda: mailbox.MailboxDocument,
    "CHARTER": lambda: charter.CharterDocument,
    "JOBS": lambda: jobs_rules.JobsDocument,
}
LOCKS = frozenset(map(lock_of, _DOCUMENTS))


def projections(policy: Policy, *, anew: bool = False) -> Iterator[Projection]:
    """All documents, as the settings want them; `anew` where git may have merged their files in any way."""
    return (document()(policy, anew=anew) for document in _DOCUMENTS.values())


def locked_documents(names: Iterable[str], policy: Policy) -> list[Projection]:
    """The documents whose locks are among these."""
    return [_DOCUMENTS[name.removeprefix(LOCK)]()(policy) for name in sorted(names) if name.startswith(LOCK)]


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
    _caught_up(environment, LOCKS, ())


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
    (projection,) = locked_documents({lock_of(name)}, policy_of(environment))
    with environment.store.unit(Scope()) as unit:
        return unit.foreseen(projection, paths)
