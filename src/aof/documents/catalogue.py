"""Every document that follows the log, by name. A new one is a line in the table here. Must not know any event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aof.documents.charter.projection import CharterDocument
from aof.documents.jobs.projection import JobsDocument
from aof.documents.mailbox.document import MailboxDocument
from aof.documents.projection import LOCK, lock_of
from aof.documents.rebuilding import others, worklog
from aof.documents.rebuilding.document import RebuiltDocument
from aof.documents.worklog.projection import WorklogFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aof.core.model.policy import Policy
    from aof.documents.projection import Projection
    from aof.documents.rebuilding.document import Additions

# Each with its files, and what adds to them what people wrote, as the settings want it.
_DOCUMENTS: dict[str, tuple[Callable[[Policy], Projection], tuple[str, ...], Callable[[Policy], Additions]]] = {
    "WORKLOG": (WorklogFile, worklog.FILES, lambda _: worklog.with_hand_written),
    "MAILBOX": (MailboxDocument, others.MAILBOX_FILES, others.mailbox_of),
    "CHARTER": (CharterDocument, others.CHARTER_FILES, lambda _: others.charter_with_hand_written),
    "JOBS": (JobsDocument, others.JOBS_FILES, lambda _: others.jobs_with_hand_written),
}


LOCKS = frozenset(map(lock_of, _DOCUMENTS))


def projections(policy: Policy, *, anew: bool = False) -> Iterator[Projection]:
    """All documents, as the settings want them; `anew` where git may have merged their files in any way."""
    return (_made(name, policy, anew=anew) for name in _DOCUMENTS)


def locked(names: Iterable[str], policy: Policy) -> list[Projection]:
    """The documents whose locks are among these."""
    return [_made(name.removeprefix(LOCK), policy) for name in sorted(names) if name.startswith(LOCK)]


def _made(name: str, policy: Policy, *, anew: bool = False) -> Projection:
    document, files, additions = _DOCUMENTS[name]
    return RebuiltDocument(document(policy), files, additions(policy), anew=anew)
