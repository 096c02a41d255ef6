"""Every document that follows the log, by name. A new one is a line in each table here. Must not know any event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aof.documents.charter.projection import CharterDocument
from aof.documents.jobs.projection import JobsDocument
from aof.documents.mailbox.document import MailboxDocument
from aof.documents.projection import LOCK
from aof.documents.rebuilding import others, worklog
from aof.documents.rebuilding.document import RebuiltDocument
from aof.documents.worklog.projection import WorklogFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aof.core.model.policy import Policy
    from aof.documents.projection import Projection

_DOCUMENTS: dict[str, Callable[[Policy], Projection]] = {
    "WORKLOG": WorklogFile,
    "MAILBOX": MailboxDocument,
    "CHARTER": CharterDocument,
    "JOBS": JobsDocument,
}


def projections(policy: Policy, *, anew: bool = False) -> Iterator[Projection]:
    """All documents, as the settings want them; `anew` where git may have merged their files in any way."""
    return (_made(name, policy, anew=anew) for name in _DOCUMENTS)


def locked(names: Iterable[str], policy: Policy) -> Iterator[Projection]:
    """The documents whose locks are among these."""
    return (_made(name.removeprefix(LOCK), policy) for name in sorted(names) if name.startswith(LOCK))


def _made(name: str, policy: Policy, *, anew: bool = False) -> Projection:
    files, additions = {
        "WORKLOG": (worklog.FILES, worklog.with_hand_written),
        "MAILBOX": (others.MAILBOX_FILES, others.mailbox_of(policy)),
        "CHARTER": (others.CHARTER_FILES, others.charter_with_hand_written),
        "JOBS": (others.JOBS_FILES, others.jobs_with_hand_written),
    }[name]
    return RebuiltDocument(_DOCUMENTS[name](policy), files, additions, anew=anew)
