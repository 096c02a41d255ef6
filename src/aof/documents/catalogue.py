"""Every document that follows the log, by name. A new one is a line in the table here. Must not know any event.

Where git has merged its files, what the log says is written anew, and what only people wrote is added to it. The same
log and the same hand-written lines give the same text, whichever side was whose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aof.documents.charter.projection import CharterDocument
from aof.documents.jobs.projection import JobsDocument
from aof.documents.mailbox.document import MailboxDocument
from aof.documents.projection import LOCK, Rewritten, lock_of
from aof.documents.rebuilding import others, worklog
from aof.documents.rebuilding.marks import is_marked, sides
from aof.documents.worklog.projection import WorklogFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from aof.core.model.events import Event
    from aof.core.model.policy import Policy
    from aof.documents.projection import Extension, Facts, Files, PastEvents, Projection

    # What the log alone says, by file; each side's files; every event, oldest first: the same with what people wrote.
    Additions = Callable[[dict[str, str], Sequence[Files], Sequence[Event]], dict[str, str]]

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


class Texts:
    """Keeps the contract of `documents.projection.Files` for texts that are at hand."""

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        self.note = ""
        self._texts = texts or {}

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none."""
        return self._texts.get(path, "")


class RebuiltDocument:
    """Keeps the contract of `documents.projection.Projection` around another one.

    A file with marks of a merge is rebuilt; with `anew`, any file that is not as AOF has left it.
    """

    def __init__(
        self, projection: Projection, files: tuple[str, ...], additions: Additions, *, anew: bool = False
    ) -> None:
        self._projection = projection
        self._files = files
        self._additions = additions
        self._anew = anew
        self.name, self.path, self.types = projection.name, projection.path, projection.types

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:
        """As without a merge."""
        return self._projection.extend(note, fresh, facts)

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:
        """Everything from the log where git merged the file; else as without a merge."""
        if past is None or not (self._anew or any(is_marked(files.text(path)) for path in self._files)):
            return self._projection.rewrite(files, fresh, past, facts)
        events = [*reversed(list(past.events)), *fresh]
        told = self._projection.rewrite(Texts(), events, None, facts)
        split = {path: sides(files.text(path)) for path in self._files}
        count = max(map(len, split.values()))
        each = [Texts({path: one[min(side, len(one) - 1)] for path, one in split.items()}) for side in range(count)]
        each.sort(key=lambda side: tuple(side.text(path) for path in self._files))
        if not told.texts and not any(side.text(path) for side in each for path in self._files):
            return Rewritten({})
        texts = self._additions(dict(told.texts), each, events)
        return Rewritten({path: text for path, text in texts.items() if text}, told.note)
