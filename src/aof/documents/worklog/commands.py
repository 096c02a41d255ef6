"""What can be said in the WORKLOG, as commands. Pure: the text of the file comes with the records.

Must not know how a command arrived, nor where the file lies.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof._support.hashing import hexdigest
from aof.core.documents import speakers
from aof.core.errors.base import AofError, Call, InvalidInput, NotFound
from aof.core.errors.org import NotAllowed
from aof.core.model.commands import Decide, NeedsOf, OnDocument
from aof.core.model.events import Draft
from aof.core.model.ids import is_task_id
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.model.workflow import leases
from aof.core.org import rights
from aof.core.tasks import authorship, graph
from aof.core.validation import limits
from aof.documents.projection import lock_of
from aof.documents.worklog import wording
from aof.documents.worklog.model import (
    ARCHIVE,
    CHECKPOINT,
    FOCUS,
    NAME,
    PATH,
    Entry,
    EventType,
    Worklog,
    WorklogSession,
)
from aof.documents.worklog.parser import parse
from aof.documents.worklog.projection import COMPACTED, STATUS
from aof.documents.worklog.renderer import text_of
from aof.documents.worklog.restoration import ENTRY

_LOCK: Final = frozenset({lock_of(NAME)})
_LINE: Final = 300
_PROPOSALS: Final = ("proposal.created", "proposal.amended")
_ADJUDICATED: Final = 4


class Say(OnDocument, frozen=True, kw_only=True):
    """Post an entry. `level` is that of the escalation ladder; at its end only a maintainer decides."""

    kind: EventType
    said: wording.Said
    level: int | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The document's lock, the task that it is about, and for proposals what was proposed before."""
        task = self.said.task
        read = frozenset({task}) if task is not None and is_task_id(task) else frozenset()
        whole = frozenset({PATH, ARCHIVE}) if self.kind in _PROPOSALS else frozenset()
        return Needs(names=_LOCK, read=read, documents=whole)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - as above
        """One event with the text of the entry, or why it cannot be posted."""
        if refusal := self._refused(records):
            return refusal
        said = self.said
        if self.kind in _PROPOSALS:
            numbered = _numbered(records, self.kind, said, self.acting)
            if isinstance(numbered, AofError):
                return numbered
            said = numbered
        text = wording.worded(self.kind, said, self.acting, iso(now))
        if isinstance(text, AofError):
            return text
        return Decision(drafts=(posted(self.kind, text, self.acting, said.subject),), agent=self.acting)

    def _refused(self, records: Records) -> AofError | None:
        policy, said = records.policy, self.said
        if refusal := speakers.refused(policy, self) or wording.problem(self.kind, said):
            return refusal
        for name in (said.next_owner, said.other, said.decides):
            if name is not None and name != "Maintainer":
                wrong = limits.name("agent", name) or speakers.stranger(policy, name)
                if wrong is not None:
                    return wrong
        if self.kind == "handoff.posted" and said.next_owner == self.acting:
            hint = "name the agent that goes on; use task.completed where the work is done"
            return InvalidInput(f"{self.acting} cannot hand over to itself", hint)
        if self.kind == "decision.recorded" and self.level == _ADJUDICATED:
            return speakers.not_maintainer(policy, self, "decide what was escalated to the maintainer")
        return _not_its_work(records, said.task, self.kind, self.acting)


def posted(kind: EventType, text: str, actor: str, subject: str) -> Draft:
    """The event of an entry, with the digest that proves its text."""
    payload: dict[str, Any] = {
        "document": NAME,
        "type": kind,
        "actor": actor,
        "text": text,
        "digest": hexdigest(text.encode()),
    }
    if kind == "decision.recorded":
        payload["decision"] = subject
    return Draft(type=ENTRY, task_id="", payload=payload)


def _not_its_work(records: Records, task_id: str | None, kind: EventType, agent: str) -> AofError | None:
    """The refusal to speak of a task that does not exist, or of the begin or end of work that was another's."""
    if task_id is None:
        return (
            InvalidInput(
                "an entry about a claim names its task", "give it", Call("worklog_add", {"type": kind, "task": "…"})
            )
            if kind == "task.claimed"
            else None
        )
    task = records.look(task_id)
    if task is None:
        return graph.missing(task_id)
    if kind == "task.claimed" and not _holds(task, agent):
        return _others(task, agent, "holds")
    if kind == "task.completed" and not (authorship.did(task, agent) or _holds(task, agent)):
        return _others(task, agent, "has worked on")
    return None


def _holds(task: Task, agent: str) -> bool:
    return any(lease.agent == agent for lease in leases(task))


def _others(task: Task, agent: str, what: str) -> NotAllowed:
    who = next((lease.agent for lease in leases(task)), None)
    return NotAllowed(
        f"only an agent that {what} {task.id} says so, and {agent} is none" + (f"; {who} holds it" if who else ""),
        "claim it first, or let the agent that did the work say it",
        Call("show", {"task_id": task.id}),
        agent=agent,
    )


def _all(records: Records) -> list[Entry]:
    return [entry for path in (ARCHIVE, PATH) for entry in parse(records.documents[path]).entries]


def _numbered(records: Records, kind: EventType, said: wording.Said, actor: str) -> wording.Said | AofError:
    """A new proposal with the next number; a further version with what it does not say anew."""
    versions = [entry for entry in _all(records) if entry.form == "proposal"]
    if kind == "proposal.created":
        last = max((int(found) for entry in versions if (found := str(entry.fields["ID"])[5:]).isdigit()), default=0)
        return msgspec.structs.replace(said, proposal_id=f"PROP-{last + 1:03d}")
    own = [entry for entry in versions if entry.fields["ID"] == said.proposal_id]
    if not own:
        there = ", ".join(dict.fromkeys(str(entry.fields["ID"]) for entry in versions)) or "none"
        return NotFound(f"there is no proposal {said.proposal_id}", f"amend one of: {there}")
    author = str(own[0].fields.get("Author") or own[0].actor)
    if author != actor:
        return NotAllowed(
            f"{said.proposal_id} is {author}'s, and {actor} cannot amend it", "post an objection instead", agent=actor
        )
    return _inherited(said, own[-1])


def _inherited(said: wording.Said, last: Entry) -> wording.Said:
    names = {"scope": "Scope", "proposal": "Proposal", "rollback": "Rollback", "deadline": "Objection deadline"}
    more = {name: str(last.fields.get(key, "")) for name, key in names.items() if not getattr(said, name)}
    if said.risks is None:
        more["risks"] = tuple(one.removeprefix("- ") for one in str(last.fields.get("Risks", "")).split("\n"))  # type: ignore[assignment]
    if not said.subject:
        more["subject"] = last.subject
    return msgspec.structs.replace(said, **more)


class SetStatus(OnDocument, frozen=True, kw_only=True):
    """Change a pinned line: one's own, or as a maintainer anybody's and the maintainer's."""

    line: Literal["now", "focus", "checkpoint"] = "now"
    text: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """Only the lock: the line is found when the file follows."""
        return Needs(names=_LOCK)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - as above
        """One event with the new text of the line."""
        policy = records.policy
        if refusal := speakers.refused(policy, self) or limits.line("text", self.text, _LINE, required=True):
            return refusal
        others = bool(policy.maintainers) and self.acting != self.actor
        if others and not rights.may_act_for(policy, self.actor, self.acting, None):
            return rights.mismatch(self.actor, self.acting)
        if self.line != "now" and (refusal := speakers.not_maintainer(policy, self, "change the maintainer's lines")):
            return refusal
        key = {"now": self.acting, "focus": FOCUS, "checkpoint": CHECKPOINT}[self.line]
        payload = {"document": NAME, "key": key, "text": self.text.strip()}
        return Decision(drafts=(Draft(type=STATUS, task_id="", payload=payload),), agent=self.acting)


class Compact(OnDocument, frozen=True, kw_only=True):
    """Move the finished sessions to the archive."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The whole file."""
        return Needs(names=_LOCK, documents=frozenset({PATH}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - as above
        """One event that names the sessions before the current one; none where there is nothing to move."""
        if refusal := speakers.refused(records.policy, self):
            return refusal
        if refusal := speakers.not_maintainer(records.policy, self, "compact the WORKLOG"):
            return refusal
        text = records.documents[PATH]
        known = parse(text)
        if not (finished := movable(known)):
            return Decision()
        moved = [
            {
                "session": one.number,
                "date": one.date,
                "summary": summary(one),
                "digest": hexdigest(text_of(text, one).encode("utf-8", "surrogateescape")),
            }
            for one in finished
        ]
        draft = Draft(type=COMPACTED, task_id="", payload={"document": NAME, "sessions": moved})
        return Decision(drafts=(draft,), agent=self.acting)


def movable(known: Worklog) -> tuple[WorklogSession, ...]:
    """The sessions before the current one; nothing where their numbers do not tell them apart."""
    numbers = [session.number for session in known.sessions]
    return known.sessions[:-1] if len(set(numbers)) == len(numbers) else ()


def summary(session: WorklogSession) -> str:
    """What a row says of an archived session."""
    people = list(dict.fromkeys(entry.actor for entry in session.entries if entry.actor))
    decided = sum(entry.form == "decision" for entry in session.entries)
    said = f"{len(session.entries)} entries" + (f" by {', '.join(people[:5])}" if people else "")
    return f"{said}; {decided} decisions" if decided else said
