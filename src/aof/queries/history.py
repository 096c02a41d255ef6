"""Every task as it was after any event, from the log alone; and what happened, in words.

`story_of` puts one event into words, by one table from the types of events to sentences, for every surface. `stories`
does so for commits: it leaves out events that only repeat, in the log's terms, what another event of the commit says.
Must not decide how a sentence is shown.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, Literal

import msgspec

from aof.errors import AofError, Call, InvalidInput, RevisionConflict, TaskNotFound
from aof.kernel.events import SUPERSEDED, Event, as_written, is_remark
from aof.kernel.evolve import evolve
from aof.kernel.limits import visible, visible_line
from aof.store.port import Store
from aof.support.printable import Say, silent
from aof.tasks.manual_edits import BY_HAND as EDITED
from aof.tasks.model import Task

_OFTEN = 1_000  # events
_FEWEST, _MOST = 8, 64  # digits of a hash
_HASH: Final = re.compile(f"[0-9a-f]{{{_FEWEST},{_MOST}}}")
_SHOWN = 16


def known(store: Store, seq: int) -> None:
    """Refuse the number of an event that there is not; zero stands for the time before the first one."""
    last = store.head()
    if not 0 <= seq <= last:
        raise InvalidInput(f"there is no event {seq}; the last one is {last}", "see the events", Call("log", {}))


def number_of(store: Store, at: int | str) -> int:
    """The number of an event that is named by its number or its hash; digits are a number where there is such an event.

    What another clone wrote is found by the hash that it had there, too: it is the event that a merge made of it.
    """
    text = str(at).lower()
    if isinstance(at, int) or _is_number(store, text):
        known(store, int(at))
        return int(at)
    if _HASH.fullmatch(text) is None:
        raise InvalidInput(
            f"{str(at)[:80]!r} is neither the number of an event nor its hash",
            f"give a number, or at least the first {_FEWEST} digits of a hash",
            Call("log", {}),
        )
    found = store.events_by_hash(text)
    if not found:
        raise InvalidInput(
            f"there is no event whose hash begins with {text[:_SHOWN]}", "see the events", Call("log", {})
        )
    if len(found) > 1:
        names = ", ".join(one.hash[: max(_SHOWN, len(text) + 4)] for one in found[:5])
        raise InvalidInput(f"the hashes of {len(found)} events begin with {text}", f"give more digits: {names}")
    if found[0].seq is None:
        where = f"the event {text[:_SHOWN]} is in events/{found[0].file}, which is not part of the history shown here"
        files = store.working_copy
        if files is not None and files.tips() > 1:
            raise InvalidInput(where, "bring the histories together first", Call("merge", {}))
        raise InvalidInput(where, "see the events", Call("log", {}))
    return found[0].seq


def _is_number(store: Store, text: str) -> bool:
    """Whether digits are a number: always where they are too few for a hash, else if there is an event with it."""
    if not (text.isascii() and text.isdigit()):
        return False
    return len(text) < _FEWEST or (len(text) <= _MOST and int(text) <= store.head())


def tasks_at(store: Store, seq: int, say: Say = silent) -> dict[str, Task]:
    """All tasks after the event with this number."""
    known(store, seq)
    tasks: dict[str, Task] = {}
    for event in store.events():
        if event.seq > seq:
            break
        if event.seq % _OFTEN == 0:
            say(f"{event.seq:,} of {seq:,} events")
        if event.task_id and not is_remark(event):
            tasks[event.task_id] = evolve(tasks.get(event.task_id), event)
    return tasks


def task_at(store: Store, task_id: str, seq: int) -> Task:
    """One task after the event with this number."""
    known(store, seq)
    task: Task | None = None
    for event in store.events(task_id=task_id):
        if event.seq > seq:
            break
        if not is_remark(event):
            task = evolve(task, event)
    if task is None:
        raise TaskNotFound(
            f"there was no task {task_id} at event {seq}", "see its events", Call("log", {"task_id": task_id})
        )
    return task


def past_view(task: Task) -> dict[str, Any]:
    """A past task as `show` gives a present one, as far as the log alone tells."""
    shown: dict[str, Any] = msgspec.to_builtins(task)
    for name in ("layout", "archived"):
        shown.pop(name, None)
    return shown | {"body": task.body}


_LONG: Final = 500  # characters of a text that an error repeats
_WORDS: Final = 40  # characters of a value in its message
_NAMED: Final = 3  # fields that its message names
_ALWAYS: Final = ("rev", "updatedAt", "title", "status")
_NOT_TOLD: Final = frozenset({"lease", "key", "requests"})


def compared(store: Store, outdated: RevisionConflict) -> RevisionConflict:
    """The refusal with both versions: what is always of interest, and the fields that differ."""
    task_id, details = outdated.details["task_id"], outdated.details
    now = _version(store, task_id, details["current_rev"])
    seen = _version(store, task_id, details["expected_rev"])
    if now is None or seen is None or seen["rev"] != details["expected_rev"]:
        expected: dict[str, Any] = {"rev": details["expected_rev"], "state": "unknown"}
        shown = {name: now[name] for name in _ALWAYS} if now is not None else {"rev": details["current_rev"]}
        message = f"{outdated.message}, which never was a revision of it"
        return _refusal(outdated, message, expected, shown)
    differ = [name for name in (seen | now) if name not in _NOT_TOLD and seen.get(name) != now.get(name)]
    names = list(dict.fromkeys((*_ALWAYS, *differ)))
    changed = [name for name in differ if name not in ("rev", "updatedAt", "lastTransitionAt")]
    told = "; ".join(_sentence(name, seen.get(name), now.get(name)) for name in changed[:_NAMED])
    message = f"{outdated.message}{f': {told}' if told else ''}"
    return _refusal(outdated, message, _part(seen, names), _part(now, names))


def _refusal(
    outdated: RevisionConflict, message: str, expected: dict[str, Any], current: dict[str, Any]
) -> RevisionConflict:
    return RevisionConflict(
        message,
        outdated.hint,
        outdated.call,
        task_id=outdated.details["task_id"],
        expected=expected,
        current=current,
    )


def _version(store: Store, task_id: str, rev: int) -> dict[str, Any] | None:
    try:
        return past_view(task_at(store, task_id, rev))
    except AofError:
        return None


def _part(version: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: _bounded(version.get(name)) for name in names}


def _bounded(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONG:
        return f"{value[:_LONG]}… ({len(value):,} characters)"
    shown = _json(value)
    return value if len(shown) <= _LONG else f"{shown[:_LONG]}…"


def _sentence(name: str, before: Any, after: Any) -> str:
    was, is_now = excerpts(before, after, _WORDS)
    return f"{name} was {was}, is {is_now}"


def excerpts(before: Any, after: Any, length: int) -> tuple[str, str]:
    """Two values on one line each; of long ones, so many characters from shortly before where they differ."""
    was, is_now = _words(before), _words(after)
    if max(len(was), len(is_now)) > length:
        common = len(os.path.commonprefix((was, is_now)))  # noqa: RUF071 - texts, not paths
        begin = max(common - length // 2, 0)
        was, is_now = _cut(was, begin, length), _cut(is_now, begin, length)
    return was, is_now


def _words(value: Any) -> str:
    if value in (None, "", [], (), {}):
        return "nothing"
    return " ".join((value if isinstance(value, str) else _json(value)).split())


def _cut(text: str, begin: int, length: int) -> str:
    if begin >= len(text):  # it ends where the other one goes on
        begin = max(len(text) - length, 0)
    shown = text[begin : begin + length]
    return f"{'…' if begin else ''}{shown}{'…' if begin + length < len(text) else ''}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


Kind = Literal["task", "worklog", "mail", "handoff"]
KINDS: Final[tuple[Kind, ...]] = ("task", "worklog", "mail", "handoff")
_LONGEST: Final = 240  # characters of what somebody wrote
_PLACE: Final = re.compile(r"\{([\w.]+)\}")
_QUIET, _HINT, _ECHO, _END, _SAID, _VERDICT = range(6)  # how much an event tells beside others of its commit


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """An event as a sentence: `who`, `before`, the title of the task that it is `about`, `after`; then the `detail`.

    `becomes` is the status that the task has reached with the commit, where the sentence does not say so. `through` is
    who gave the command for `who`, and `by` whose session, token or run it came by, where those are others.
    """

    event: Event
    kind: Kind
    who: str
    before: str
    about: str = ""
    after: str = ""
    detail: str = ""
    becomes: str = ""
    through: str = ""
    by: str = ""

    @property
    def beside(self) -> str:
        """Who gave the command and whose session it came by, where either is another than `who`."""
        named = (("called by", self.through), ("signed in as", self.by))
        return ", ".join(f"{how} {name}" for how, name in named if name)

    def text(self, title: str = "") -> str:
        """The sentence on one line; without a title for where the task is known."""
        named = f"'{visible_line(title)}'" if title and self.about else ""
        sentence = " ".join(part for part in (self.who, self.before, named, self.after) if part)
        return f"{sentence}: {self.detail}" if self.detail else sentence


class _Line(msgspec.Struct, frozen=True):
    """How a type reads: a sentence with `{task}` where the title goes and other places from the payload.

    `details` are the places where what somebody wrote may be; the first one that is there counts. `who` is the place of
    whom it is about, where that is not who did it.
    """

    says: str
    details: tuple[str, ...] = ()
    tells: int = _SAID
    who: str = ""
    detail: str = ""


_MOVES: Final = {
    ("review", "done"): "approved {task}",
    ("review", "ready"): "sent {task} back",
    ("in-progress", "review"): "put {task} up for review",
    ("in-progress", "done"): "finished {task}",
    ("in-progress", "ready"): "put {task} back into the queue",
    ("ready", "in-progress"): "took {task} up",
    ("blocked", "ready"): "unblocked {task}",
    ("blocked", "in-progress"): "unblocked {task}",
    ("backlog", "ready"): "made {task} ready",
    ("deadletter", "ready"): "revived {task}",
    ("done", "ready"): "reopened {task}",
    ("cancelled", "ready"): "reopened {task}",
}
_ARRIVALS: Final = {
    "blocked": "blocked {task}",
    "cancelled": "cancelled {task}",
    "deadletter": "gave {task} up",
    "backlog": "put {task} into the backlog",
    "done": "closed {task}",
}
_OWN_WORDS: Final = frozenset(
    {"approved", "claimed", "cancelled", "queued", "retried", "resumed", "done", "complete", "unblocked", "failed"}
)
_FIELDS: Final = {"dependsOn": "dependencies", "parentId": "parent"}
_HAND: Final = "hand"  # whom the log names for what somebody did to the files
_BY_HAND: Final = "an edit by hand"
_EDGES: Final = {
    "satisfied": ("completed what {task} waited for", "{}"),
    "broken": ("broke a dependency of {task}", "{} will not be done"),
    "active": ("reopened a dependency of {task}", "it waits for {} again"),
}
_CAPITAL: Final = re.compile(r"[A-Z]")
_OUTCOMES: Final = {
    "blocked": "is stuck in {task}",
    "needs_review": "put {task} up for review",
    "partial": "finished a part of {task}",
}
_RUN_ENDS: Final = {
    "released": "gave {task} back",
    "superseded": "lost {task} to another clone",
    "expired": "fell silent in {task}",
}


def _moved(what: Mapping[str, Any]) -> _Line:
    step = (str(what.get("from")), str(what.get("to")))
    known = _MOVES.get(step) or _ARRIVALS.get(step[1])
    why = "reason" if what.get("reason") not in _OWN_WORDS else ""
    return _Line(known or "moved {task} from {from} to {to}", (why,), _ECHO)


def _ended(what: Mapping[str, Any]) -> _Line:
    status, why = str(what.get("status")), _said(_at(what, "error.message"))
    if status == "cancelled":
        return _Line("stopped a run of {task}", (), _HINT)
    if status == "released" and what.get("by"):
        return _Line("gave {agent}'s run of {task} back", tells=_END, who="by")
    said = _RUN_ENDS.get(status, "failed at {task}")
    return _Line(said, tells=_END, who="agent", detail="" if why == status else why)


def _completed(what: Mapping[str, Any]) -> _Line:
    outcome = what.get("result", {}).get("outcome", "done")
    return _Line(_OUTCOMES.get(outcome, "finished {task}"), ("result.notes", "result.blockers"))


def _updated(what: Mapping[str, Any]) -> _Line:
    """Which fields were changed, in the words of a person; a note in the work log changes none."""
    fields = what.get("fields")
    names = fields if isinstance(fields, list | tuple) else ()
    if names and all(name == "workLog" for name in names):
        return _Line("added a note to {task}", ("workLog", "changes.workLog"))
    words = [_FIELDS.get(name) or spaced(name) for name in map(_said, names) if name != "workLog"]
    listed = " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
    if not listed:
        return _Line("changed {task}", ("reason",))
    return _Line(f"changed the {listed.replace('{', '{ ')} of {{task}}", ("reason",))


def spaced(name: str) -> str:
    """A key of the frontmatter as words."""
    return _CAPITAL.sub(lambda found: f" {found.group().lower()}", name)


def _depends(what: Mapping[str, Any]) -> _Line:
    """What a task waits for from now on, or no longer: its edges were changed, or the task at their other end."""
    if what.get("added"):
        return _Line("made {task} wait for {added}", (), _HINT)
    if what.get("removed"):
        return _Line("removed what {task} waited for", ("removed",), _HINT)
    known = _EDGES.get(_said(what.get("status")))
    if known is None:
        return _Line("changed what {task} waits for", (), _HINT)
    said, detail = known
    return _Line(said, tells=_HINT, detail=detail.format(_said(what.get("targetId"))))


def _progress(what: Mapping[str, Any]) -> _Line:
    """Progress without a figure is told without one."""
    said = "reported progress on {task}" if what.get("percent") is None else "is at {percent} % of {task}"
    return _Line(said, ("text", "workLog"))


def _answered(what: Mapping[str, Any]) -> _Line:
    if what.get("withdrawn"):
        return _Line("withdrew {question} of {task}", (), _HINT)
    return _Line("answered {question} of {task}", ("text",))


def _late(what: Mapping[str, Any]) -> _Line:
    """A report beside the one that stands, or one of a run that holds the task no longer."""
    said = "reported on {task} again; the first report counts" if what.get("again") else "reported on {task} too late"
    return _Line(said, ("result.summary", "result.notes"))


def _signed_in(what: Mapping[str, Any]) -> _Line:
    """The server tells how many attempts there were, not whose."""
    many = "{count} attempts" if what.get("count", 1) != 1 else "an attempt"
    return _Line(f"turned away {many} to sign in", detail="a wrong token, or a link that was used before or is too old")


def _entry(what: Mapping[str, Any]) -> _Line:
    if what.get("decision"):
        return _Line("decided", ("decision",))
    title = _said(what.get("text")).strip().partition("\n")[0]
    return _Line("noted", detail=title.removeprefix("### ").removeprefix(f"{what.get('actor')}: "))


def _mail(what: Mapping[str, Any]) -> _Line:
    said = {"acknowledged": "acknowledged a message", "actioned": "dealt with a message"}
    return _Line(said.get(str(what.get("status")), "marked a message as {status}"), ("ack.reason",))


def _checked(what: Mapping[str, Any]) -> _Line:
    passed = what.get("outcome") in ("proceed", "proceed_with_warnings")
    return _Line("was let go on with {task}" if passed else "was stopped by a limit in {task}", ("reason",), not passed)


_LINES: Final[dict[str, _Line | Callable[[Mapping[str, Any]], _Line]]] = {
    "task.created": _Line("created {task}"),
    "task.restored": _Line("restored {task}"),
    "task.updated": _updated,
    "task.dependency.updated": _depends,
    "task.transitioned": _moved,
    "task.attempt.started": _Line("claimed {task}"),
    "task.attempt.completed": _Line("ended a run of {task}", (), _HINT),
    "task.attempt.failed": _ended,
    "task.completed": _completed,
    "task.retrying": _Line("queued {task} again", ("reason",), _HINT),
    "task.progress": _progress,
    "task.cancel_requested": _Line("asked to cancel {task}", (), _HINT),
    "task.lost": _Line("took {task} from {agent}, who gave no sign of life"),
    "task.timed_out": _Line("ran out of time for {task}"),
    "task.archived": _Line("archived {task}"),
    "task.unarchived": _Line("took {task} out of the archive"),
    "task.workflow.attached": _Line("put {task} into the workflow {workflow.name}", (), _HINT),
    "task.workflow.closed": _Line("ended the workflow of {task}", (), _QUIET),
    "run.exited": _Line("saw a worker of {task} end", ("reason",), _QUIET),
    "autonomy.checked": _checked,
    "file.locked": _Line("locked files for {task}", ("paths",)),
    "file.unlocked": _Line("unlocked files of {task}", ("paths",), _ECHO),
    "file.refused": _Line("was refused files for {task}", ("paths",)),
    "task.accepted": _Line("accepted {task}", (), _QUIET),
    "task.queued": _Line("queued {task}", (), _QUIET),
    "task.commented": _Line("commented on {task}", ("text", "workLog")),
    "task.late_result": _late,
    "task.noted": _Line("noted on {task}", ("workLog",)),
    "task.link.added": _Line("linked {task}", ("targetId",)),
    "task.link.removed": _Line("unlinked {task}", ("targetId",)),
    "task.request.answered": _Line("noted a request about {task}", (), _QUIET),
    "task.delivery.updated": _Line("noted the delivery of {task}", (), _QUIET),
    "task.delegated": _Line("gave {task} to {targetId}", (), _QUIET),
    "task.question.asked": _Line("asks about {task}", ("question.text",)),
    "task.question.answered": _answered,
    "task.sla_alert": _Line("noticed that {task} waits too long in {status}"),
    "task.overdue": _Line("noticed that {task} is overdue", ("due",)),
    "task.warning": _Line("warned about {task}", ("detail",)),
    "task.merged": _Line("merged what clones did with {task}", ("conflicts",)),
    "task.hop.opened": _Line("opened {hop} of {task}", (), _HINT),
    "task.hop.completed": _Line("finished {hop} of {task}", (), _END),
    "task.hop.waiting_approval": _Line("put {hop} of {task} up for review", (), _END),
    "task.hop.rejected": _Line("sent {task} back", ("blockers", "reason"), _VERDICT),
    "task.hop.failed": _Line("failed at {hop} of {task}", ("reason",)),
    "task.hop.blocked": _Line("is stuck in {hop} of {task}", ("reason",)),
    "task.hop.unblocked": _Line("unblocked {hop} of {task}", ()),
    "task.hop.skipped": _Line("skipped {hop} of {task}", ("reason",), _HINT),
    "task.hop.reset": _Line("will do {hop} of {task} again", ("reason",), _HINT),
    "context.set": _Line("set {name} for {task}", ("value",), _ECHO),
    "context.decided": _Line("decided in {task}", ("description",)),
    "context.artifact": _Line("added {artifact.path} to {task}", ("artifact.description",)),
    "context.rule": _Line("chose how {task} settles conflicts", ("rule",)),
    "context.conflict": _Line("wrote {name} of {task} at the same time as others"),
    "context.refused": _Line("was not allowed to set {name} for {task}"),
    "agent.turn.began": _Line("began a turn", (), _QUIET),
    "agent.turn.ended": _Line("ended a turn", (), _QUIET),
    "agent.unavailable": _Line("found that {agent} does not answer", ("reason",)),
    "agent.available": _Line("found that {agent} answers again", ("reason",)),
    "delegation.requested": _Line("delegated {task} to {request.toAgent}", ("request.description",)),
    "delegation.accepted": _Line("accepted {task} from {audit.from_agent}"),
    "delegation.rejected": _Line("declined {task} from {audit.from_agent}", ("reason",)),
    "delegation.restored": _Line("restored the delegation of {task}"),
    "handoff.initiated": _Line("handed {task} to {handoff.to_agent}", ("handoff.reason",)),
    "handoff.accepted": _Line("accepted {task} from {audit.from_agent}"),
    "handoff.rejected": _Line("declined {task} from {audit.from_agent}", ("reason",)),
    "handoff.deferred": _Line("put off {task} from {audit.from_agent}", ("acceptance.reason",)),
    "handoff.escalated": _Line("escalated {task} to {toAgent}", ("reason", "audit.reason")),
    "handoff.rerouted": _Line("passed {task} on to {toAgent}", ("reason",)),
    "handoff.returned": _Line("returned {task} to {return.to_agent} as {return.status}", ("return.result.body",)),
    "handoff.late_return": _Line("returned {task} too late", ("return.result.body",)),
    "handoff.completed": _Line("closed the handoff of {task}", ("closed_reason",), _ECHO),
    "handoff.failed": _Line("ended the handoff of {task} without success", ("closed_reason",), _END),
    "handoff.resent": _Line("sent the handoff of {task} again", ("reason",)),
    "handoff.reminded": _Line("reminded {toAgent} of {task}"),
    "handoff.timeout": _Line("waited in vain for an answer about {task}", ("reason",)),
    "handoff.unanswered": _Line("waited in vain for {toAgent} to answer about {task}", ("reason",)),
    "handoff.warning": _Line("was warned about {task}", ("message",)),
    "handoff.refused": _Line("was refused a step of the handoff of {task}", ("detail",)),
    "handoff.delivered": _Line("delivered the handoff of {task}", (), _QUIET),
    "handoff.informed": _Line("passed news of {task} on", (), _QUIET),
    "handoff.released": _Line("ended the handoff of {task}", (), _QUIET),
    "protocol.message.received": _Line("sent {type} about {task}", ("notApplied.detail",), _ECHO),
    "protocol.message.rejected": _Line("sent a message that was refused", ("detail",)),
    "protocol.message.unknown": _Line("sent a message of an unknown type", ("type",)),
    "http.authentication.failed": _signed_in,
    "a2a.push.set": _Line("asked to be told about {task}", (), _QUIET),
    "a2a.push.dropped": _Line("is told no more about {task}", ("reason",), _QUIET),
    "document.mail.sent": _Line("wrote to {message.to}", ("message.subject",)),
    "document.mail.changed": _mail,
    "document.mail.closed": _Line("closed a message", ("ack.reason",)),
    "document.mail.escalated": _Line("escalated a message to {agent}", ("text",)),
    "document.mail.archived": _Line("archived messages", ("messageIds",)),
    "document.mail.settled": _Line("settled the mailbox", (), _QUIET),
    "document.job.added": _Line("scheduled {job}", ("record.task.title",)),
    "document.job.paused": _Line("paused the schedule of {job}"),
    "document.job.resumed": _Line("resumed the schedule of {job}"),
    "document.job.dispatched": _Line("created a task for {job}", (), _ECHO),
    "document.job.failed": _Line("could not create a task for {job}", ("error",)),
    "document.job.removed": _Line("removed the schedule of {job}"),
    "document.worklog.entry": _entry,
    "document.worklog.status": _Line("updated {key} in the worklog", ("text",)),
    "document.worklog.compacted": _Line("shortened the worklog"),
    "document.worklog.restored": _Line("restored the worklog"),
    "document.charter.created": _Line("wrote the charter", ("charter.milestone",)),
    "document.charter.amended": _Line("amended the charter", ("reason",)),
    "document.charter.signed": _Line("signed the charter"),
    "document.superseded": _Line("merged what clones wrote", (), _QUIET),
}
_KINDS: Final[tuple[tuple[str, Kind], ...]] = (
    ("document.mail.", "mail"),
    ("document.worklog.", "worklog"),
    ("document.charter.", "worklog"),
    ("handoff.", "handoff"),
    ("delegation.", "handoff"),
)


def kind_of(event: Event) -> Kind:
    """What an event is about."""
    return next((kind for beginning, kind in _KINDS if as_written(event).type.startswith(beginning)), "task")


def story_of(event: Event) -> Story:
    """One event in words. A type that nobody has worded reads as its name does."""
    written = as_written(event)
    payload, line = written.payload, _line(written)
    before, names, after = _filled(line.says, payload).partition("{task}")
    at = f" at {_said(payload['hop'])}" if "hop" in payload and "{hop}" not in line.says else ""
    who = _said(_at(payload, line.who)) or event.agent or event.actor
    who = _BY_HAND if who == _HAND else who
    found = (_shortened(_said(_at(payload, place))) for place in line.details)
    detail = (_shortened(line.detail) or next(filter(None, found), "")).removeprefix(f"{who}: ")
    elsewhere = " in another clone" if event.type == SUPERSEDED else ""
    return Story(
        event=event,
        kind=kind_of(event),
        who=who,
        before=before.strip(),
        about=event.task_id if names else "",
        after=f"{after}{at}{elsewhere}".strip(),
        detail="" if detail == EDITED and who == _BY_HAND else detail,
        through=event.actor if event.agent and event.actor != who else "",
        by=event.called_by or "",
    )


def stories(events: Iterable[Event]) -> Iterator[Story]:
    """What the commits of a stretch of the log tell, in its order: of each task only what says most."""
    for _, commit in groupby(events, key=lambda one: one.begins):
        together = list(commit)
        most: dict[str, int] = {}
        reached: dict[str, str] = {}
        for event in together:
            most[event.task_id] = max(most.get(event.task_id, _QUIET), _line(as_written(event)).tells)
            if event.type == "task.transitioned":
                reached[event.task_id] = str(event.payload.get("to", ""))
        said: list[Story] = []
        for event in together:
            weight = _line(as_written(event)).tells
            if weight == _QUIET or weight < most[event.task_id]:
                continue
            own = event.type == "task.transitioned"
            if own and event.payload.get("to") != reached[event.task_id]:
                continue  # it went on within the commit
            said.append(story_of(event))
        last = {story.event.task_id: place for place, story in enumerate(said)}
        for place, story in enumerate(said):
            moved = story.event.type == "task.transitioned" or last[story.event.task_id] != place
            became = "" if moved else reached.get(story.event.task_id, "")
            yield msgspec.structs.replace(story, becomes=became) if became else story


def _line(event: Event) -> _Line:
    found = _LINES.get(event.type) or _Line(event.type.removeprefix("task.").replace(".", " ").replace("_", " "))
    if not callable(found):
        return found
    return found(event.payload)


def _filled(sentence: str, payload: Mapping[str, Any]) -> str:
    def place(found: re.Match[str]) -> str:
        name = found.group(1)
        return "{task}" if name == "task" else _said(_at(payload, name)).replace("{task}", "{ task}") or "?"

    return _PLACE.sub(place, sentence)


def _at(payload: Any, place: str) -> Any:
    """What stands at a place such as `result.notes`; None where the payload is built otherwise."""
    for name in place.split("."):
        payload = payload.get(name) if isinstance(payload, Mapping) else None
    return payload


def _said(value: Any) -> str:
    """A value as a person would write it, with everything in it visible."""
    if isinstance(value, list | tuple):
        return ", ".join(_said(one) for one in value)
    if isinstance(value, float):
        return f"{value:g}"
    return visible(str(value)) if isinstance(value, str | int) else ""


def _shortened(text: str) -> str:
    """One line within bounds, without the marks of Markdown headings."""
    line = " ".join(part for part in text.replace("#", " ").split() if part)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
