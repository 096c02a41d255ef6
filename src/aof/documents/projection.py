"""What all documents share: how one follows the log, is rebuilt after a merge, and what commands on one check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, Protocol

import msgspec

from aof.documents import hand_edits
from aof.errors import AofError, Call, NotAllowed
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Decide, Needs, NeedsOf, OnDocument, Records, Verdict
from aof.kernel.events import Event
from aof.kernel.model import Policy
from aof.org import rights

LOCK: Final = "document:"
_NAME: Final = 128


class Files(Protocol):
    """The files of a document, read when they are asked for. `note` is the one that was kept; empty if it is lost."""

    note: str

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none."""
        ...


class Facts(Protocol):
    """What a projection may look up, as it is at the moment."""

    def title(self, task_id: str) -> str | None:
        """The title of a task, if it can be told."""
        ...

    def held_by(self, agent: str) -> tuple[str, ...]:
        """The tasks that an agent holds."""
        ...


class PastEvents(msgspec.Struct, frozen=True):
    """The events before the fresh ones, newest first. `applied` says that each was written to the file once.

    Only given where the file is not as AOF has left it.
    """

    events: Iterator[Event]
    applied: bool


class Extension(msgspec.Struct, frozen=True):
    """Text to add at the end of the document, and the note to keep."""

    text: str
    note: str


class Rewritten(msgspec.Struct, frozen=True):
    """The files that change, in the order in which they have to be written, and the note to keep.

    They are flushed, unless the log has everything that they say: then a power cut may take them.
    """

    texts: dict[str, str]
    note: str = ""
    flushed: bool = True


class Projection:
    """One document. `path` is its file in the data directory; `types` are the beginnings of the events it follows.

    `files` are those that git may have merged: where one of them has the marks of a merge, the document is written
    anew from the log, and then gets what people wrote on either side. With `anew`, so is any file that is not as AOF
    has left it. The note is whatever the projection wants to know about the file without reading it, in at most 256
    characters.
    """

    name: str
    path: str
    types: tuple[str, ...]
    files: tuple[str, ...] = ()

    def __init__(self, policy: Policy, *, anew: bool = False) -> None:
        self._policy = policy
        self._anew = anew

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:  # noqa: ARG002 - a default
        """What the events add at the end of the file, as AOF left it; None where the whole text is needed."""
        return None

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:
        """The files after the fresh events, with earlier text that is missing at their end written again.

        With `past`, the file may hold fresh events already: a writer may have died after writing it.
        """
        if past is None or not (self._anew or any(hand_edits.is_marked(files.text(path)) for path in self.files)):
            return self.updated(files, fresh, past, facts)
        events = [*reversed(list(past.events)), *fresh]
        written = self.updated(Texts({}), events, None, facts)
        split = {path: hand_edits.sides(files.text(path)) for path in self.files}
        count = max(map(len, split.values()))
        sides = [Texts({path: one[min(side, len(one) - 1)] for path, one in split.items()}) for side in range(count)]
        sides.sort(key=lambda side: tuple(side.text(path) for path in self.files))
        if not written.texts and not any(side.text(path) for side in sides for path in self.files):
            return Rewritten({})
        from_log = {path: _titled(text, path, sides) for path, text in written.texts.items()}
        texts = from_log | self.with_hand_written(from_log, sides, events)
        return Rewritten({path: text for path, text in texts.items() if text}, written.note)

    def updated(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:
        """The result of `rewrite` for files without marks of a merge."""
        raise NotImplementedError

    def with_hand_written(
        self, from_log: dict[str, str], sides: Sequence[Files], events: Sequence[Event]
    ) -> dict[str, str]:
        """The files that change when what only people wrote, on any side of a merge, joins what the log alone says.

        `events` are all events of the document, oldest first.
        """
        raise NotImplementedError


class Texts:
    """Texts at hand, which keep the contract of `Files`."""

    note = ""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none."""
        return self._texts.get(path, "")


def _titled(text: str, path: str, sides: Sequence[Files]) -> str:
    """The text with the title that the file has.

    Where nobody has set a project, each clone would put the name of its own folder there.
    """
    titles = [title for side in sides if (title := side.text(path).partition("\n")[0]).startswith("# ")]
    first, end, rest = text.partition("\n")
    return f"{min(titles)}{end}{rest}" if titles and first.startswith("# ") else text


def lock_of(name: str) -> str:
    """The named lock of a document."""
    return f"{LOCK}{name}"


class DocumentCommand(OnDocument, frozen=True, kw_only=True):
    """A command about one document, decided under its lock. `reads` are the files whose text it looks at."""

    document: ClassVar[str]
    reads: ClassVar[frozenset[str]] = frozenset()

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - every command's signature
        """The document's lock and its files."""
        return Needs(names=frozenset({lock_of(self.document)}), documents=self.reads)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - every command's signature
        """Refuse a caller that may not speak; then let `settle` decide."""
        return speaker_refusal(records.policy, self) or self.settle(records, now)

    def settle(self, records: Records, now: int) -> Verdict:
        """The events of the command, or why it is refused."""
        raise NotImplementedError


def speaker_refusal(policy: Policy, command: OnDocument) -> AofError | None:
    """Why the caller may not speak as the one that it names, or why that one may not speak at all."""
    named = kernel_limits.line("actor", command.actor, _NAME, required=True) or kernel_limits.names(agent=command.agent)
    if named is not None:
        return named
    agent = command.acting
    bound = policy.binds and command.outside
    if agent != command.actor and bound and not rights.may_act_for(policy, command.actor, agent, None):
        return rights.mismatch(command.actor, agent)
    return stranger(policy, agent)


def stranger(policy: Policy, name: str) -> AofError | None:
    """The refusal of a name that is not in the roster, where there is one."""
    chart = policy.org
    if chart is None or name in chart.by_id or is_maintainer(policy, name):
        return None
    return NotAllowed(
        f"{name[:80]} is neither in the org chart nor a maintainer",
        "use the name of an agent of the chart; see who there is",
        Call("org_show", {}),
        agent=name[:80],
    )


def is_maintainer(policy: Policy, name: str) -> bool:
    """Whether the settings name somebody as a maintainer."""
    return name in policy.maintainers


def not_maintainer(policy: Policy, command: OnDocument, what: str) -> NotAllowed | None:
    """The refusal of what only a maintainer may do; where the settings name none, everybody may."""
    if not policy.has_maintainers or is_maintainer(policy, command.acting):
        return None
    return NotAllowed(
        f"{command.acting[:80]} is no maintainer and may not {what}",
        f"let a maintainer do it: {', '.join(policy.maintainers[:5]) or 'one whose name is proven'}",
        agent=command.acting[:80],
    )
