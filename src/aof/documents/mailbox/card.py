"""One card: reads a message from it, in bold lines or as a table, and finds the lines that a change concerns.

Reading never fails: what cannot be understood is reported by its line and left as it stands. Must not know the rest of
the mailbox.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

import msgspec

from aof.core.documents.mailbox.message import (
    DISPOSITIONS,
    NONE,
    OPEN,
    PRIORITIES,
    TYPES,
    Ack,
    MailMessage,
    is_message_id,
)
from aof.documents.mailbox import body as bodies
from aof.documents.markdown import bold_field, cells, code_blocks

FIELDS: Final = (
    "From",
    "Date",
    "Type",
    "Priority",
    "Status",
    "Subject",
    "Closure owner",
    "Review scope",
    "Response needed by",
)
_KNOWN: Final = {name.lower(): name for name in (*FIELDS, "To")}
_REQUIRED: Final = ("Date", "Type", "Priority", "Status", "Subject")
_ARROW: Final = re.compile(r"(.+?)\s*(?:->|→)\s*(.+)")
_PARTS: Final = re.compile(r"\s+(?:—|\u2013|--)\s+|\s*\|\s*")
_LABEL: Final = re.compile(r"(?:\*\*)?(Summary|Ack)(?::?\*\*|:)?:?", re.IGNORECASE)
_OWN_ACK: Final = re.compile(r"Ack \(([^)]+)\)", re.IGNORECASE)
_CLOSED: Final = re.compile(r"closed(?:\s*[(:—-]+\s*([a-z]+)\)?)?")
_CLOSED_AS: Final = re.compile(r"Closed \(([a-z]+)\)")
_QUICK: Final = re.compile(
    r"### (MSG-\d{8}-\d{3,9})\n\n\*\*From:\*\* (\S+) -> (\S+)\n\*\*Date:\*\* (\S+)\n\*\*Type:\*\* (\S+)\n"
    r"\*\*Priority:\*\* (P[012])\n\*\*Status:\*\* (unread|acknowledged|blocked|actioned)\n\*\*Subject:\*\* (.+)\n"
    r"\*\*Closure owner:\*\* (\S+)\n\*\*Review scope:\*\* (\S+)\n\*\*Response needed by:\*\* (.+)\n",
    re.ASCII,
)


class CardProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is wrong with a file, by its line."""

    line: int
    code: str
    detail: str
    severity: Literal["error", "warning"] = "error"


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A card as it was read. Lines are counted from its heading, which is line 0.

    `status_line` is where the status stands; `ack_after` is the line behind which the next acknowledgement goes, as an
    item of a list where `listed`.
    """

    message: MailMessage
    form: Literal["bold", "table"]
    raw_status: str
    status_line: int | None
    ack_after: int
    listed: bool
    problems: tuple[CardProblem, ...]


@lru_cache(maxsize=4096)  # from one command to the next, most cards stay as they are
def quick(text: str) -> MailMessage | None:
    """The message of a card in exactly our own form, without its body and acknowledgements; None for any other."""
    found = _QUICK.match(text)
    if found is None:
        return None
    return MailMessage(
        message_id=found[1],
        sender=found[2],
        receiver=found[3],
        date=found[4],
        type=found[5],
        priority=found[6],
        status=found[7],
        subject=found[8].strip(),
        closure_owner=found[9],
        review_scope=found[10],
        response_needed_by=found[11].strip(),
    )


class _Reading:
    """What has been read of a card so far."""

    def __init__(self, text: str) -> None:
        self.lines = [line.rstrip("\r") for line in text.split("\n")]
        self.hidden = {one for begin, end in code_blocks(self.lines).items() for one in range(begin, end)}
        self.values: dict[str, str] = {}
        self.places: dict[str, int] = {}
        self.extra: dict[str, str] = {}
        self.problems: list[CardProblem] = []

    def field(self, name: str, value: str, place: int) -> None:
        known = _KNOWN.get(name.lower())
        if known is None:
            self.extra.setdefault(name, value)
        elif known in self.places:
            self.problem(place, "duplicate_field", f"a second {known} line; the first one counts")
        else:
            self.values[known], self.places[known] = value, place

    def problem(self, place: int, code: str, detail: str, *, warning: bool = False) -> None:
        self.problems.append(CardProblem(place, code, detail, "warning" if warning else "error"))


def read(text: str) -> Card:
    """The card that the text is, from its heading on."""
    reading = _Reading(text)
    form: Literal["bold", "table"]
    form, begin = _header(reading)
    end = len(reading.lines)
    while end > begin and reading.lines[end - 1].strip() in ("", "---"):
        end -= 1
    acks, kept, ack_after, listed = _body(reading, form, begin, end)
    title = reading.lines[0].strip().removeprefix("###").strip().rstrip("#").strip()
    return Card(
        message=_message(reading, title, acks, bodies.original(bodies.trimmed("\n".join(kept)))),
        form=form,
        raw_status=reading.values.get("Status", ""),
        status_line=reading.places.get("Status"),
        ack_after=ack_after,
        listed=listed,
        problems=tuple(sorted(reading.problems, key=lambda problem: problem.line)),
    )


def _header(reading: _Reading) -> tuple[Literal["bold", "table"], int]:
    """Read the fields; the form of the card, and the place behind them."""
    place = _next(reading, 1)
    if place < len(reading.lines) and [name.lower() for name in cells(reading.lines[place])] == ["field", "value"]:
        return "table", _table(reading, place + 1)
    last = 1
    while place < len(reading.lines):
        pair = bold_field(reading.lines[place].strip()) if place not in reading.hidden else None
        if pair is None or pair[0].lower().startswith("ack") or pair[0].lower() == "summary":
            break
        reading.field(*pair, place)
        last = place + 1
        place = _next(reading, last)
    return "bold", last


def _table(reading: _Reading, place: int) -> int:
    while place < len(reading.lines) and reading.lines[place].lstrip().startswith("|"):
        row = cells(reading.lines[place])
        if set("".join(row)) <= set(":- "):
            pass
        elif len(row) == 2:  # noqa: PLR2004 - a name and a value
            reading.field(row[0].strip("*: "), row[1], place)
        elif len(row) == 1:
            reading.field(row[0].strip("*: "), "", place)
        else:
            reading.problem(place, "row_cells", f"a row of a card has two cells, this one has {len(row)}")
        place += 1
    return place


def _next(reading: _Reading, place: int) -> int:
    """The next line that is not blank."""
    while place < len(reading.lines) and not reading.lines[place].strip():
        place += 1
    return place


def _body(reading: _Reading, form: str, begin: int, end: int) -> tuple[list[Ack], list[str], int, bool]:
    """The acknowledgements, the lines of the body, and where the next acknowledgement goes."""
    acks: list[Ack] = []
    kept: list[str] = []
    after, listed, listing = end - 1, False, False
    for place in range(begin, end):
        line = reading.lines[place]
        bare = line.strip()
        if place in reading.hidden:
            kept.append(line)
            listing = False
            continue
        pair = bold_field(bare)
        label = _LABEL.fullmatch(bare) if form == "table" or bare.startswith("**") else None
        if label is not None and (label[1].lower() == "ack" or form == "table"):
            listing = label[1].lower() == "ack"
            continue
        if listing and bare.startswith("- "):
            acks.append(_ack(reading, place, bare[2:]))
            after, listed = place, True
        elif pair is not None and pair[0].lower() == "ack":
            acks.append(_ack(reading, place, pair[1]))
            after, listed, listing = place, False, False
        elif pair is not None and (own := _OWN_ACK.fullmatch(pair[0])):
            acks.append(_ack(reading, place, f"{own[1]} — {pair[1]}"))
            after, listed, listing = place, False, False
        else:
            listing = listing and not bare
            if pair is not None and pair[0].lower() in _KNOWN:
                reading.problem(place, "duplicate_field", f"a {pair[0]} line in the body does not count")
            kept.append(line)
    return acks, kept, after, listed


def _ack(reading: _Reading, place: int, text: str) -> Ack:
    parts = [part.strip() for part in _PARTS.split(text, maxsplit=2)]
    if len(parts) == 3 and all(parts):  # noqa: PLR2004 - actor, date, reason
        return Ack(*parts)
    reading.problem(place, "ack_form", "an acknowledgement is written: actor — date — reason", warning=True)
    return Ack(parts[0] if len(parts) > 1 else "", parts[1] if len(parts) > 1 else "", parts[-1])


def _message(reading: _Reading, title: str, acks: list[Ack], body: str) -> MailMessage:
    values = reading.values
    sender, receiver = _parties(reading)
    status, disposition = _status(reading)
    if not is_message_id(title):
        reading.problem(0, "malformed_id", f"{title[:80]!r} is no message ID such as MSG-20260221-001")
    for name in _REQUIRED:
        if name not in values:
            reading.problem(0, "missing_field", f"{title[:80]} has no {name}")
    if status == "closed" and disposition is None and acks and (found := _CLOSED_AS.match(acks[-1].reason)):
        disposition = found[1]
    kind, priority = values.get("Type", "").lower(), values.get("Priority", "").upper()
    for name, value, allowed in (("Type", kind, TYPES), ("Priority", priority, PRIORITIES)):
        if value not in allowed and name in values:
            detail = f"{name} {values[name][:40]!r} is none of {', '.join(allowed)}"
            reading.problem(reading.places[name], f"unknown_{name.lower()}", detail)
    return MailMessage(
        message_id=title,
        sender=sender,
        receiver=receiver,
        date=values.get("Date", ""),
        type=kind,
        priority=priority,
        status=status,
        subject=values.get("Subject", ""),
        closure_owner=values.get("Closure owner", NONE),
        review_scope=values.get("Review scope", NONE).lower(),
        response_needed_by=values.get("Response needed by", NONE),
        body=body,
        acks=tuple(acks),
        fields=reading.extra,
        disposition=disposition,
    )


def _parties(reading: _Reading) -> tuple[str, str]:
    given, to = reading.values.get("From", ""), reading.values.get("To", "")
    if not to and (found := _ARROW.fullmatch(given)):
        return found[1].strip(), found[2].strip()
    if not given or not to:
        place = reading.places.get("From", 0)
        reading.problem(place, "missing_field", "the From line is written: sender -> receiver")
    return given, to


def _status(reading: _Reading) -> tuple[str, str | None]:
    """The status as it counts, and how the message was closed where that is what it says."""
    said = reading.values.get("Status", "").lower()
    if said == "new":
        return "unread", None
    if said in OPEN:
        return said, None
    if said in DISPOSITIONS:
        return "closed", said
    if (found := _CLOSED.fullmatch(said)) is not None:
        return "closed", found[1]
    if "Status" in reading.places:
        detail = f"Status {said[:40]!r} is none of {', '.join((*OPEN, 'closed'))}"
        reading.problem(reading.places["Status"], "unknown_status", detail)
    return said, None
