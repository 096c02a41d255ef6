"""Every document that follows the log, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from aof.documents import charter, mailbox, worklog
from aof.documents.projection import LOCK, lock_of
from aof.jobs import rules as jobs_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.documents.projection import Projection
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
