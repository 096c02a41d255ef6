"""The check of the WORKLOG: the file, its archive, the log and the tasks held against each other.

Only reads, but for `restore`, which is asked for by itself. Must not know how entries are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aof.app.commands import unit_of_work
from aof.app.documents import reading
from aof.core.documents import speakers
from aof.core.documents.mailbox import facts
from aof.core.errors.base import AofError
from aof.core.model.ids import OURSELVES
from aof.core.model.times import millis
from aof.core.validation.findings import Finding
from aof.documents import edits
from aof.documents.conflicts import anti_patterns
from aof.documents.projection import lock_of
from aof.documents.worklog import check, projection, restoration
from aof.documents.worklog.model import ARCHIVE, EDITS, NAME, PATH, Worklog
from aof.documents.worklog.parser import parse
from aof.ports.store import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.core.model.events import Draft, Event

_MAILBOX = ("MAILBOX.md", "MAILBOX_ARCHIVE.md")


def of_text(environment: Environment, text: str) -> Iterator[Finding]:
    """What is wrong with a text by itself."""
    known = parse(text)
    yield from known.findings
    yield from _of_parts(environment, known, Worklog(title=""))


def of_file(environment: Environment) -> Iterator[Finding]:
    """What is wrong with the WORKLOG as it will be after it catches up, also where it differs from the log."""
    store = environment.store
    found = reading.foreseen(environment, NAME, PATH, ARCHIVE, EDITS, *_MAILBOX)
    known, old = parse(found[PATH]), parse(found[ARCHIVE])
    entries = (*old.entries, *known.entries)
    types = projection.WorklogFile(environment.policy).types
    events = [event for event in store.events() if event.type.startswith(types)]
    yield from known.findings
    yield from _of_parts(environment, known, old)
    yield from check.against_log(entries, known.decisions, events, _said(environment))
    yield from check.unsettled(found[EDITS])
    yield from check.of_links(entries, lambda link: _exists(environment, link, found))
    done = store.find(environment.read_models.query(status="done")).tasks
    yield from check.of_tasks(entries, (task.id for task in done))
    yield from check.of_long_work(known.entries, _minutes(events))
    for one in anti_patterns.unproven_agreements(entries, _answered(environment)):
        yield check.finding(one.code, one.line, one.detail, "link to where that agent says so", one.severity)


def _answered(environment: Environment) -> dict[str, set[str]]:
    """Who has answered each message."""
    found: dict[str, set[str]] = {}
    for event in environment.store.told((facts.CHANGED, facts.CLOSED)):
        _, ack = facts.change_in(event.payload)
        found.setdefault(event.payload["messageId"], set()).add(ack.actor)
    return found


def restore(environment: Environment) -> None:
    """Put back entries that were deleted, as the log has them, and move edits by hand to the log."""
    if _restored(environment, reading.foreseen(environment, NAME, PATH, ARCHIVE, EDITS)) is None:
        return  # nothing is written where nothing is to be put back
    draft = _restored(environment, reading.texts(environment, NAME, PATH, ARCHIVE, EDITS))
    if draft is None:
        return
    names, policy = frozenset({lock_of(NAME)}), reading.policy_of(environment)
    with environment.store.unit(Scope(names=names)) as unit:
        unit.commit((draft,), actor=OURSELVES, agent=None, now=environment.clock.now())
        unit_of_work.follow(unit, names, policy)


def _restored(environment: Environment, found: dict[str, str]) -> Draft | None:
    """The event that puts back what the documents lack; None where they lack nothing."""
    entries = (*parse(found[ARCHIVE]).entries, *parse(found[PATH]).entries)
    types = projection.WorklogFile(environment.policy).types
    events = (event for event in environment.store.events() if event.type.startswith(types))
    lost = restoration.lost_entries(entries, events, _said(environment))
    return restoration.draft(lost, (edit for _, edit in edits.kept(found[EDITS])))


def _of_parts(environment: Environment, known: Worklog, archived: Worklog) -> Iterator[Finding]:
    policy = reading.policy_of(environment)
    yield from check.of_entries(
        known, lambda name: name.lower() == "maintainer" or speakers.stranger(policy, name) is None
    )
    yield from check.of_evidence(known.entries)
    yield from check.of_index(known, archived)
    yield from check.of_length(known, policy.worklog.longest)


def _said(environment: Environment) -> restoration.Said:
    """The entry of an event, with the title that its task has now."""
    return projection.EntryTexts(_Titles(lambda task_id: _title(environment, task_id))).of


class _Titles:
    """What a line is made from beside its event."""

    def __init__(self, title: Callable[[str], str | None]) -> None:
        self.title = title

    def held_by(self, agent: str) -> tuple[str, ...]:  # noqa: ARG002 - the contract's form
        return ()


def _title(environment: Environment, task_id: str) -> str | None:
    try:
        return environment.lookup.get(task_id).title
    except AofError:
        return None


def _exists(environment: Environment, link: str, found: dict[str, str]) -> bool:
    if link.startswith("TASK-"):
        return link in environment.store.ids(link)
    return link.startswith("MSG-") and any(link in found[path] for path in _MAILBOX)


def _minutes(events: Sequence[Event]) -> dict[str, float]:
    """How long the run took that completed each task."""
    began: dict[str | None, int] = {}
    took: dict[str, float] = {}
    for event in events:
        if event.type == "task.attempt.started":
            began[event.run_id] = millis(event.timestamp)
        elif event.type == "task.completed" and event.run_id in began:
            took[event.task_id] = (millis(event.timestamp) - began[event.run_id]) / 60_000
    return took
