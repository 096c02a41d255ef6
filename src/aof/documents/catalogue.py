"""Every document that follows the log, by name. A new document is a line here. Must not know any event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aof.documents.charter.projection import CharterDocument
from aof.documents.mailbox.document import MailboxDocument
from aof.documents.projection import LOCK
from aof.documents.worklog.projection import WorklogFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aof.core.model.policy import Policy
    from aof.documents.projection import Projection

_DOCUMENTS: dict[str, Callable[[Policy], Projection]] = {
    "WORKLOG": WorklogFile,
    "MAILBOX": MailboxDocument,
    "CHARTER": CharterDocument,
}


def projections(policy: Policy) -> Iterator[Projection]:
    """All documents, as the settings want them."""
    return (make(policy) for make in _DOCUMENTS.values())


def locked(names: Iterable[str], policy: Policy) -> Iterator[Projection]:
    """The documents whose locks are among these."""
    return (_DOCUMENTS[name.removeprefix(LOCK)](policy) for name in sorted(names) if name.startswith(LOCK))
