"""How SESSION_CHARTER.md follows from the log, and the commands that create, amend and sign the charter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from aof.documents import charter_rules, hand_edits, markdown, projection, worklog_rules, worklog_text
from aof.documents.charter_rules import Change, Charter, SetGate, SetLane, unpacked
from aof.documents.charter_text import apply_changes, parse_charter, render_charter
from aof.documents.hand_edits import HandEdit
from aof.documents.markdown import heading, scan, tables
from aof.documents.projection import DocumentCommand, Facts, Files, PastEvents, Projection, Rewritten, lock_of
from aof.errors import AofError, Call, CharterExists, NoCharter, NotAllowed
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Decision, Needs, NeedsOf, Records, Verdict
from aof.kernel.events import Draft, Event
from aof.kernel.model import iso
from aof.org import rights
from aof.support.typed import prepare_type

NAME: Final = "CHARTER"
PATH: Final = "SESSION_CHARTER.md"
EDITS: Final = "SESSION_CHARTER_EDITS.md"
WORKLOG: Final = "WORKLOG.md"
TYPES: Final = ("document.charter.",)
CREATED: Final = "document.charter.created"
AMENDED: Final = "document.charter.amended"
SIGNED: Final = "document.charter.signed"


class CharterDocument(Projection):
    """The charter, and the file of edits by hand."""

    name, path, types, files = NAME, PATH, TYPES, (PATH,)

    def updated(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:  # noqa: ARG002 - the contract
        """What a person has changed since stays, but for gates and owners; what may not be written is looked for."""
        text = files.text(PATH)
        missing: list[Event] = []
        known = list(past.events)[::-1] if past is not None and text else []
        if past is not None and not past.applied:
            for event in reversed(known) if text else past.events:
                if text and text_after(text, event) == text:
                    break
                missing.insert(0, event)
                if event.type == CREATED:
                    break
        new, by_hand = text, list[HandEdit]()
        for event in missing:
            new = text_after(new, event)
        if known:
            new, by_hand = _with_logged_rights(new, known, files)
        for event in fresh:
            new = text_after(new, event)
        kept = {EDITS: hand_edits.with_kept(files.text(EDITS), PATH, by_hand)} if by_hand else {}
        return Rewritten(kept | ({PATH: new} if new != text else {}))

    def with_hand_written(
        self, from_log: dict[str, str], sides: Sequence[Files], events: Sequence[Event]
    ) -> dict[str, str]:
        """Each line that no event ever wrote goes behind the line that stood before it."""
        text = from_log.get(PATH, "")
        if not text:
            return {PATH: next((side.text(PATH) for side in sides if side.text(PATH)), "")}
        logged: set[str] = set()
        step = ""
        for event in events:
            step = text_after("" if event.type == CREATED else step, event)
            logged.update(markdown.unix(step).split("\n"))
        end, lines = markdown.ending(text), markdown.unix(text).split("\n")
        for side in sides:
            before = ""
            for line in markdown.unix(side.text(PATH)).split("\n"):
                if line.strip() and line not in logged and line not in lines:
                    lines.insert(lines.index(before) + 1 if before in lines else len(lines), line)
                before = line if line in lines else before
        return {PATH: end.join(lines)}


def _with_logged_rights(text: str, events: Sequence[Event], files: Files) -> tuple[str, list[HandEdit]]:
    """The text with the gates and the owners of lanes that the log has, unless the maintainer decided on an owner."""
    logged, there = parse_charter(replayed(events)), parse_charter(text)
    lines, owners = text.splitlines(), {lane.name: lane.owner for lane in logged.lanes}
    changes, by_hand = list[Change](), list[HandEdit]()
    if scopes(logged) != scopes(there) and there.gates:
        changes += [SetGate(gate=gate) for gate in logged.gates]
        gates = "\n".join(lines[gate.line - 1] for gate in there.gates if gate.line)
        by_hand.append(HandEdit("a person changed the approval gates", gates))
    decided = decisions(files.text(WORKLOG))
    for lane in there.lanes:
        owner = owners.get(lane.name, lane.owner)
        if owner == lane.owner or any(lane.name in one and lane.owner in one for one in decided):
            continue
        changes.append(SetLane(lane=msgspec.structs.replace(lane, owner=owner)))
        what = f"a person changed the owner of the lane {lane.name!r} from {owner} to {lane.owner} without a decision"
        by_hand.append(HandEdit(what, lines[lane.line - 1]))
    return (apply_changes(text, changes), by_hand) if changes else (text, [])


def scopes(charter: Charter) -> dict[str, tuple[str, ...]]:
    """What each gate that holds something up covers, and for how long."""
    return {
        gate.band: (*gate.scope, str(gate.delay_seconds))
        for gate in charter.gates
        if gate.scope and gate.band != "auto"
    }


def decisions(worklog: str) -> list[str]:
    """The texts of the decisions in the index of a WORKLOG."""
    lines, index = scan(worklog), worklog_text.INDEX.casefold()
    titles = ((place, heading(line.text)) for place, line in enumerate(lines))
    begin = next((place for place, title in titles if title is not None and title[1].casefold() == index), None)
    if begin is None:
        return []
    end = next(
        (place for place in range(begin + 1, len(lines)) if (found := heading(lines[place].text)) and found[0] <= 2),  # noqa: PLR2004 - the level of sections
        len(lines),
    )
    return [row.cells[0] for table in tables(lines[begin:end]) for row in table.rows if row.cells]


def text_after(text: str, event: Event) -> str:
    """The text after an event; one that cannot be read changes nothing."""
    try:
        if event.type == CREATED:
            return text or render_charter(msgspec.convert(event.payload["charter"], prepare_type(Charter)))
        return apply_changes(text, unpacked(event.payload["changes"])) if text else text
    except (KeyError, msgspec.ValidationError):
        return text


def replayed(events: Sequence[Event]) -> str:
    """The last charter as the log alone has it: from its creation on, without what people did by hand."""
    begins = [place for place, event in enumerate(events) if event.type == CREATED]
    text = ""
    for event in events[begins[-1] :] if begins else ():
        text = text_after(text, event)
    return text


_REASON, _DECISION = 512, 400


class CharterCommand(DocumentCommand, frozen=True, kw_only=True):
    """A command about the charter."""

    document: ClassVar[str] = NAME
    reads: ClassVar[frozenset[str]] = frozenset({PATH})


class CreateCharter(CharterCommand, frozen=True, kw_only=True):
    """Begin a session."""

    charter: charter_rules.Charter

    def settle(self, records: Records, now: int) -> Verdict:  # noqa: ARG002 - the rule's signature
        """Once per session."""
        refused = projection.not_maintainer(
            records.policy, self, "create the charter"
        ) or charter_rules.unwritable_charter(self.charter)
        if refused is not None:
            return refused
        if (text := records.documents[PATH]).strip():
            return CharterExists(
                f"there is a charter already, of session {parse_charter(text).session_id[:80] or 'unknown'}",
                f"amend it, or move {PATH} away to begin a new session",
                Call("charter_amend", {"reason": "…"}),
            )
        payload = {"document": NAME, "charter": msgspec.to_builtins(self.charter)}
        return Decision(drafts=(Draft(type=CREATED, task_id="", payload=payload),))


class AmendCharter(CharterCommand, frozen=True, kw_only=True):
    """Change what was agreed, by decision of the maintainer."""

    changes: tuple[charter_rules.Change, ...]
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The WORKLOG gets the decision in the same commit."""
        own = super().needs(known, needs)
        return msgspec.structs.replace(own, names=own.names | {lock_of(worklog_text.NAME)})

    def settle(self, records: Records, now: int) -> Verdict:
        """Only what changes something is recorded, with a decision in the index of the WORKLOG."""
        text = records.documents[PATH]
        refused = (
            projection.not_maintainer(records.policy, self, "amend the charter")
            or kernel_limits.line("reason", self.reason, _REASON, required=True)
            or _absent(text)
            or charter_rules.unwritable_charter(parse_charter(new := apply_changes(text, self.changes)))
        )
        if refused is not None:
            return refused
        if new == text:
            return Decision()
        payload = {"document": NAME, "changes": charter_rules.packed(self.changes), "reason": self.reason}
        decided = worklog_rules.Wording(
            subject=f"Charter amended: {charter_rules.described(self.changes)}"[:_DECISION], reasons=(self.reason,)
        )
        entry = worklog_rules.worded("decision.recorded", decided, self.acting, iso(now))
        if isinstance(entry, AofError):
            return entry
        row = worklog_rules.posted("decision.recorded", entry, self.acting, decided.subject)
        return Decision(drafts=(Draft(type=AMENDED, task_id="", payload=payload), row), agent=self.acting)


class SignCharter(CharterCommand, frozen=True, kw_only=True):
    """An agent accepts its role and lane."""

    status: str = charter_rules.HANDSHAKE_STATUSES[0]
    notes: str = ""

    def settle(self, records: Records, now: int) -> Verdict:
        """An agent signs for itself; signing again what holds changes nothing."""
        text = records.documents[PATH]
        refused = (
            _absent(text)
            or kernel_limits.choice("status", self.status, charter_rules.HANDSHAKE_STATUSES)
            or kernel_limits.line("notes", self.notes, _REASON)
        )
        if refused is not None:
            return refused
        charter, agent = parse_charter(text), self.acting
        if agent != self.actor and not projection.is_maintainer(records.policy, self.actor):
            return rights.mismatch(self.actor, agent)
        seat = charter.participant(agent)
        if seat is None or seat.is_observer:
            return NotAllowed(
                f"{agent[:80]} has no seat in the roster to sign for",
                "let a maintainer add it to the roster",
                Call("charter_amend", {"participants": [f"{agent}:Developer:LANE"], "reason": "…"}),
            )
        before = charter.signature(agent)
        if before is not None and (before.status, before.notes) == (self.status, self.notes):
            return Decision()
        signature = charter_rules.Signature(
            agent=agent,
            signed=agent,
            role=seat.role,
            lane=seat.lane,
            status=self.status,
            notes=self.notes,
            timestamp=iso(now),
        )
        payload = {"document": NAME, "changes": charter_rules.packed((charter_rules.Sign(signature=signature),))}
        return Decision(drafts=(Draft(type=SIGNED, task_id="", payload=payload),))


def _absent(text: str) -> AofError | None:
    if text.strip():
        return None
    return NoCharter("there is no session charter", "let a maintainer create one", Call("charter_init", {}))
