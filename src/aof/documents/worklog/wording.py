"""What somebody says in the WORKLOG, checked and put into the form of its kind.

Text in, text or a refusal out. Must not know the file, nor who may say what.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from aof.core.errors.base import AofError, Call, InvalidInput, PayloadTooLarge
from aof.core.validation import limits
from aof.documents.escaping import contained
from aof.documents.worklog import forms, renderer
from aof.documents.worklog.forms import HANDOFF_KEYS, LISTS, NONE, PROPOSAL_KEYS, STATUSES
from aof.documents.worklog.model import EventType

BODY: Final = 20_000
WHOLE: Final = 60_000
_SHORT: Final = 1_000
_BLOB: Final = re.compile(r"[A-Za-z0-9+/=_-]{1000,}")
_LONG: Final = ("body", "recommended", "counter", "compromise", "agreed", "proposal", "rollback")
_PROPOSAL: Final = {
    "Scope": "scope",
    "Proposal": "proposal",
    "Risks": "risks",
    "Rollback": "rollback",
    "Objection deadline": "deadline",
}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an entry can be made of; which of it is needed depends on the kind."""

    subject: str = ""
    body: str = ""
    task: str | None = None
    status: str | None = None
    changed: tuple[str, ...] | None = None
    tests: tuple[str, ...] | None = None
    risks: tuple[str, ...] | None = None
    blocking: tuple[str, ...] | None = None
    next_owner: str | None = None
    next: str = ""
    result: str = ""
    quick: bool = False
    other: str | None = None
    recommended: str = ""
    counter: str = ""
    reasons: tuple[str, ...] = ()
    compromise: str = ""
    agreed: str = ""
    proposal_id: str | None = None
    scope: str = ""
    proposal: str = ""
    rollback: str = ""
    deadline: str = ""
    proposal_status: str = "open"
    decides: str | None = None
    links: tuple[str, ...] = ()


def problem(kind: EventType, said: Said) -> AofError | None:
    """What no entry may hold, whatever its kind: too much, what no text file holds, and what no person can read."""
    for name in said.__struct_fields__:
        value = getattr(said, name)
        if isinstance(value, tuple) and len(value) > limits.ITEMS:
            what = f"'{name}' has {len(value)} items, the limit is {limits.ITEMS}"
            return PayloadTooLarge(what, "name the most important ones, and keep the rest in a file")
        long = name in _LONG or (name == "subject" and kind == "decision.recorded")
        for one in value if isinstance(value, tuple) else (value,):
            if not isinstance(one, str):
                continue
            most = limits.TITLE if name == "subject" else BODY if long else _SHORT
            check = limits.text if long or name == "reasons" else limits.line
            if (found := check(name, one, most)) is not None:
                return found
            if _BLOB.search(one):
                return InvalidInput(
                    f"'{name}' holds encoded data that no person can read",
                    "keep it in a file, and name the file in the entry",
                )
    return None


def worded(kind: EventType, said: Said, actor: str, moment: str) -> str | AofError:
    """The entry, or what is missing from it, or that it is too long to be read."""
    text = _worded(kind, said, actor, moment)
    if isinstance(text, str) and len(text) > WHOLE:
        what = f"the entry has {len(text):,} characters, the limit is {WHOLE:,}"
        return PayloadTooLarge(what, "keep long text in a file, and name the file in the entry")
    return text


def _worded(kind: EventType, said: Said, actor: str, moment: str) -> str | AofError:
    if kind in ("task.claimed", "task.completed", "handoff.posted"):
        return _work(kind, said, actor, moment)
    if not said.subject.strip():
        return _missing("subject", kind)
    if kind in ("proposal.created", "proposal.amended"):
        form = _proposal(kind, said, actor, moment)
    elif kind == "objection.raised":
        form = _counter(said, actor)
    elif kind == "decision.recorded":
        form = [("Decision", said.subject), *_reasons(said)]
    else:
        form = [("Escalation", said.subject), ("Decides", said.decides or "Maintainer"), *_reasons(said)]
    if isinstance(form, AofError):
        return form
    linked = [("Links", ", ".join(said.links))] if said.links else []
    body = [("Details", said.body)] if said.body.strip() else []
    return renderer.entry(actor, said.subject, moment, forms.bold([*form, *linked, *body]))


def _missing(field: str, kind: str, hint: str = "") -> InvalidInput:
    example: dict[str, Any] = {"type": kind, "agent": "…", field: "…"}
    return InvalidInput(f"an entry of the type {kind} needs '{field}'", hint or "give it", Call("worklog_add", example))


def _work(kind: EventType, said: Said, actor: str, moment: str) -> str | AofError:
    """A handoff in full, or a quick line: a claim is always quick, the others when they are asked for so."""
    subject = said.subject.strip() or said.task or ""
    if not subject:
        return _missing("subject", kind)
    if said.quick or kind == "task.claimed":
        return _quick(kind, said, subject, actor, moment)
    status = _spelled(said.status or ("Complete" if kind == "task.completed" else ""))
    lists = dict(zip(LISTS, (said.changed, said.tests, said.risks, said.blocking), strict=True))
    if refusal := _incomplete(kind, said, status, lists):
        return refusal
    named = {key: [one for one in items or () if one.strip().lower() != NONE] for key, items in lists.items()}
    following = f"{said.next_owner} ({said.next})" if said.next else said.next_owner
    fields = dict(zip(HANDOFF_KEYS, (subject, actor, status), strict=False)) | named | {"Next owner": following}
    about = f"Task: {said.task}" if said.task and said.task not in subject else ""
    body = "\n\n".join(part for part in (about, _see(said), said.body) if part.strip())
    return renderer.entry(actor, subject, moment, forms.block(fields), body)


def _incomplete(kind: EventType, said: Said, status: str, lists: dict[str, tuple[str, ...] | None]) -> AofError | None:
    """What a full handoff lacks."""
    if not status:
        return _missing("status", kind, f"give one of {', '.join(STATUSES)}; for one line, use quick")
    if (wrong := limits.choice("status", status, STATUSES)) is not None:
        return wrong
    if (kind == "task.completed") != (status == "Complete"):
        return InvalidInput(
            f"an entry of the type {kind} cannot have the status '{status}'",
            "use task.completed for work that is complete, and handoff.posted for the rest",
        )
    if said.next_owner is None:
        return _missing("next_owner", kind, "say who goes on, or Maintainer")
    lacking = next((key for key, items in lists.items() if items is None), None)
    if lacking is not None:
        return InvalidInput(f"a full handoff needs '{lacking}'", "give it; 'none' says that there are none")
    return None


def _spelled(status: str) -> str:
    """The status as the block spells it, whatever the case it was given in."""
    return next((one for one in STATUSES if one.lower() == status.strip().lower()), status)


def _see(said: Said) -> str:
    return f"See {', '.join(said.links)}" if said.links else ""


def _quick(kind: EventType, said: Said, subject: str, actor: str, moment: str) -> str | AofError:
    what = subject if kind != "task.claimed" or subject.lower().startswith("claimed") else f"claimed {subject}"
    if said.task and said.task not in what:
        what = f"{what}, {said.task}"
    result = said.result
    if kind == "task.completed" and "tests run" not in result.lower():
        tests = ", ".join(said.tests or ()) or NONE
        result = f"{result}; Tests run: {tests}" if result else f"Tests run: {tests}"
    if kind == "handoff.posted" and said.next_owner is None:
        return _missing("next_owner", kind, "say who goes on")
    line = forms.quick_line(moment[11:16], actor, what, result, (said.next_owner or "", said.next))
    if not said.body.strip():
        return line
    more = contained(said.body, forms.RESERVED).split("\n")
    return "\n".join([line, *(one for one in more if one.strip())])


def _reasons(said: Said) -> list[tuple[str, str]]:
    if not said.reasons:
        return []
    return [("Reasoning", "\n".join(f"- {' '.join(reason.split())}" for reason in said.reasons))]


def _counter(said: Said, actor: str) -> list[tuple[str, str]] | AofError:
    kind = "objection.raised"
    if not said.other:
        return _missing("other", kind, "name the agent that recommended it")
    if said.other == actor:
        return InvalidInput(f"{actor} cannot object to itself", "name the agent that recommended it")
    for name in ("recommended", "counter"):
        if not getattr(said, name).strip():
            return _missing(name, kind)
    if not said.reasons:
        return _missing("reasons", kind, "a counter-recommendation gives at least one reason")
    form = [
        (f"{said.other} recommended", said.recommended),
        (f"{actor}'s counter-recommendation", said.counter),
        *_reasons(said),
    ]
    if said.compromise:
        form.append(("Proposed compromise", said.compromise))
    return [*form, ("Agreed action", said.agreed or "open")]


def _proposal(kind: EventType, said: Said, actor: str, moment: str) -> list[tuple[str, str]] | AofError:
    if said.proposal_id is None:
        return _missing("proposal_id", kind)
    if (wrong := limits.choice("proposal_status", said.proposal_status, forms.PROPOSAL_STATUSES)) is not None:
        return wrong
    values = {"ID": said.proposal_id, "Author": actor, "Date": moment[:10], "Status": said.proposal_status}
    for key, name in _PROPOSAL.items():
        given = getattr(said, name)
        text = "\n".join(f"- {one}" for one in given) if isinstance(given, tuple) else given or ""
        if not text.strip():
            return _missing(name, kind, f"a proposal says its '{key}'")
        values[key] = text
    return [(key, values[key]) for key in PROPOSAL_KEYS]
