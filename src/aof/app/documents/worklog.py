"""Operations on the WORKLOG. Must not know how entries are written or where the file lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from aof.app.documents import reading, worklog_check
from aof.app.documents.conflicts import seen
from aof.app.documents.conflicts.service import turns_since
from aof.app.operations.results import Result
from aof.core.model.times import iso
from aof.core.validation import limits
from aof.documents.conflicts.commands import Object
from aof.documents.worklog import commands, envelope, wording
from aof.documents.worklog.model import ARCHIVE, CHARTER, NAME, PATH, EventType
from aof.documents.worklog.parser import last_session, parse, parse_entry
from aof.documents.worklog.session_id import session_id
from aof.ports.store import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.documents.worklog.envelope import EntryEnvelope


class Pinned(Result, frozen=True, kw_only=True):
    """A line of the pinned block."""

    key: str
    text: str


class WorklogView(Result, frozen=True, kw_only=True):
    """What the WORKLOG says: pinned lines, decisions and entries, and up to which moment and event that is known."""

    as_of: str
    seq: int
    status: list[dict[str, str]]
    decisions: list[dict[str, str]]
    total: int
    entries: list[dict[str, Any]]


class DocumentCheck(Result, frozen=True, kw_only=True):
    """What is wrong with a document; warnings alone leave it valid."""

    ok: bool
    problems: list[dict[str, Any]]


class Compacted(Result, frozen=True, kw_only=True):
    """The sessions that were moved to the archive."""

    moved: list[int]
    archive: str
    lines: int


class WorklogService:
    """Posts entries, changes pinned lines, shows, checks and compacts."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def worklog_add(
        self,
        type: str,  # noqa: A002 - what it is called on every surface
        *,
        agent: str | None = None,
        subject: str = "",
        body: str = "",
        task: str | None = None,
        status: str | None = None,
        changed: Sequence[str] | None = None,
        tests: Sequence[str] | None = None,
        risks: Sequence[str] | None = None,
        blocking: Sequence[str] | None = None,
        next_owner: str | None = None,
        next: str = "",  # noqa: A002 - as above
        result: str = "",
        quick: bool = False,
        other: str | None = None,
        recommended: str = "",
        counter: str = "",
        reasons: Sequence[str] = (),
        compromise: str = "",
        agreed: str = "",
        proposal_id: str | None = None,
        scope: str = "",
        proposal: str = "",
        rollback: str = "",
        deadline: str = "",
        proposal_status: str = "open",
        decides: str | None = None,
        links: Sequence[str] = (),
        level: int | None = None,
        actor: str | None = None,
    ) -> EntryEnvelope:
        """Post an entry; which of the parameters it needs depends on its type."""
        kinds = EventType.__args__  # type: ignore[attr-defined]
        if problem := limits.choice("type", type, kinds):
            raise problem
        full = self._environment.lookup.resolve(task) if task else None
        said = wording.Said(
            subject=subject,
            body=body,
            task=full,
            status=status,
            changed=_listed(changed),
            tests=_listed(tests),
            risks=_listed(risks),
            blocking=_listed(blocking),
            next_owner=next_owner,
            next=next,
            result=result,
            quick=quick,
            other=other,
            recommended=recommended,
            counter=counter,
            reasons=tuple(reasons),
            compromise=compromise,
            agreed=agreed,
            proposal_id=proposal_id,
            scope=scope,
            proposal=proposal,
            rollback=rollback,
            deadline=deadline,
            proposal_status=proposal_status,
            decides=decides,
            links=tuple(links),
        )
        given = {"kind": type, "said": said, "level": level, "agent": agent, "actor": actor}
        if type == "objection.raised":
            given["turns"] = turns_since(self._environment, agent or actor or self._dispatcher.actor, links)
            return self._post(self._dispatcher.command(Object, given))
        return self._post(self._dispatcher.command(commands.Say, given))

    def worklog_decide(
        self,
        text: str,
        *,
        owner: str | None = None,
        reasons: Sequence[str] = (),
        body: str = "",
        task: str | None = None,
        links: Sequence[str] = (),
        level: int | None = None,
        actor: str | None = None,
    ) -> EntryEnvelope:
        """Record a decision: an entry, and a row in the decision index."""
        return self.worklog_add(
            "decision.recorded",
            agent=owner,
            subject=text,
            reasons=reasons,
            body=body,
            task=task,
            links=links,
            level=level,
            actor=actor,
        )

    def _post(self, command: Any) -> EntryEnvelope:
        done = self._dispatcher.dispatch(command)
        event = done.events[-1]
        session, number = self._session()
        entry = parse_entry(event.payload["text"], event.timestamp[:10], number)
        (found,) = envelope.envelopes([entry], session)
        kind = event.payload["type"]
        return found if found.event_type == kind else _retyped(found, kind)

    def _session(self) -> tuple[str, int]:
        """The charter's name for the session, and its number in the WORKLOG."""
        with self._environment.store.unit(Scope()) as unit:
            return session_id(unit.document(CHARTER)), last_session(unit.document(PATH))

    def worklog_now(
        self,
        text: str,
        *,
        agent: str | None = None,
        line: Literal["now", "focus", "checkpoint"] = "now",
        actor: str | None = None,
    ) -> Pinned:
        """Say what an agent works on now, or change one of the maintainer's two lines."""
        given = {"text": text, "line": line, "agent": agent, "actor": actor}
        done = self._dispatcher.dispatch(self._dispatcher.command(commands.SetStatus, given))
        payload = done.events[-1].payload
        return Pinned(key=payload["key"], text=payload["text"])

    def worklog_show(
        self,
        *,
        type: str | None = None,  # noqa: A002 - what it is called on every surface
        agent: str | None = None,
        task: str | None = None,
        limit: int | None = None,
        archived: bool = False,
        unseen_by: str | None = None,
    ) -> WorklogView:
        """The pinned lines, the decisions and the entries, oldest first; the last ones with a limit.

        `unseen_by` gives only what an agent cannot have read: what was posted since its latest turn began.
        """
        full = self._environment.lookup.resolve(task) if task else None
        unseen = seen.unseen_by(self._environment, unseen_by) if unseen_by is not None else None

        def wanted(one: EntryEnvelope) -> bool:
            return (
                type in (None, one.event_type)
                and agent in (None, one.actor)
                and (full is None or full in one.links)
                and (unseen is None or unseen(one))
            )

        return self._view(wanted, limit, archived=archived)

    def catch_up(self, agent: str, limit: int) -> WorklogView:
        """What an agent reads when its turn begins: with what others posted since its previous one, archived or not."""
        return self._view(seen.since_previous_turn(self._environment, agent), limit, archived=True)

    def _view(self, wanted: Callable[[EntryEnvelope], bool], limit: int | None, *, archived: bool) -> WorklogView:
        here = self._environment
        seq, now = here.store.head(), here.clock.now()
        found = reading.texts(here, NAME, PATH, ARCHIVE, CHARTER)
        known, old = parse(found[PATH]), parse(found[ARCHIVE])
        entries = (*old.entries, *known.entries)
        every = list(envelope.envelopes(entries, session_id(found[CHARTER])))[0 if archived else len(old.entries) :]
        shown = [one for one in every if wanted(one)]
        last = shown if limit is None else shown[max(len(shown) - limit, 0) :]
        return WorklogView(
            as_of=iso(now),
            seq=seq,
            status=[{"key": one.key, "text": one.text} for one in known.status],
            decisions=[_row(one) for one in known.decisions],
            total=len(shown),
            entries=[_built(one) for one in last],
        )

    def worklog_check(self, text: str | None = None) -> DocumentCheck:
        """What is wrong with the WORKLOG, by itself and held against the log; a given text is checked by itself."""
        here = self._environment
        findings = list(worklog_check.of_text(here, text) if text is not None else worklog_check.of_file(here))
        ok = all(finding.severity != "error" for finding in findings)
        return DocumentCheck(ok=ok, problems=[finding.told() for finding in findings])

    def worklog_compact(self, *, agent: str | None = None, actor: str | None = None) -> Compacted:
        """Move the finished sessions to the archive. Only a maintainer may."""
        done = self._dispatcher.dispatch(self._dispatcher.command(commands.Compact, {"agent": agent, "actor": actor}))
        moved = [one["session"] for event in done.events for one in event.payload["sessions"]]
        text = reading.texts(self._environment, NAME, PATH)[PATH]
        return Compacted(moved=moved, archive=ARCHIVE, lines=parse(text).lines)


def _listed(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _retyped(found: EntryEnvelope, kind: str) -> EntryEnvelope:
    import msgspec

    return msgspec.structs.replace(found, event_type=kind)


def _built(one: EntryEnvelope) -> dict[str, Any]:
    import msgspec

    built: dict[str, Any] = msgspec.to_builtins(one)
    return built


def _row(one: Any) -> dict[str, str]:
    return {"decision": one.decision, "owner": one.owner, "timestamp": one.timestamp, "section": one.section}
