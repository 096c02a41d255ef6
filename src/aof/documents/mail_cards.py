"""The parts of MAILBOX.md: headings, cards, bodies, payloads and tables, read and changed line by line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

import msgspec

from aof.documents import markdown
from aof.documents.mail_rules import (
    DISPOSITIONS,
    MAIL_TYPES,
    NONE,
    OPEN,
    PRIORITIES,
    Ack,
    InboxRow,
    MailMessage,
    ReviewPayload,
    is_message_id,
)
from aof.documents.markdown import (
    bold_field,
    cells,
    closes_code,
    code_blocks,
    heading,
    opens_code,
    outside_code,
    plain_field,
    row,
    table,
)
from aof.kernel.findings import DocumentFinding

INBOX: Final = "Inbox Snapshot"
QUEUE: Final = "Open Queue (Newest First)"
ACTIVE: Final = "Active Messages (Newest First)"
CLOSED: Final = "Closed Summary"
SECTIONS: Final = (INBOX, QUEUE, ACTIVE, CLOSED)
_ALSO: Final = {"Closed Summary (Newest First)": CLOSED}
_MARK: Final = re.compile(r"\n(?= {0,3}(?:#{2,3}[ \t]|`{3}|~{3})|[ \t]*<!--)")
_UNUSUAL: Final = ("```", "~~~", "<!--", "\n #", "\n  #", "\n   #")
_UNCLOSED, _SECTION, _CARD = 0, 2, 3
BEGIN: Final = "### MSG-"  # of a card as we write it


class MailboxSection(msgspec.Struct, frozen=True):
    """A section by the name that we give it, from its heading to the next; `inner` is behind the heading's line."""

    name: str
    start: int
    inner: int
    end: int


class CardPlace(msgspec.Struct, frozen=True):
    """A card from its heading to where the next one begins, with its separator."""

    title: str
    start: int
    end: int


class Outline(msgspec.Struct, frozen=True):
    """The sections in order, and the cards of the active one. `whole`: every fence and comment is closed."""

    sections: tuple[MailboxSection, ...]
    cards: tuple[CardPlace, ...]
    whole: bool


def outline(text: str) -> Outline:
    """The sections and cards of a text."""
    found = list(_headings(text))
    tops = [(start, title) for start, level, title in found if level == _SECTION]
    sections = tuple(
        MailboxSection(_ALSO.get(title, title), start, _line_end(text, start), end)
        for start, title, end in _spans(tops, len(text))
    )
    whole = all(level != _UNCLOSED for _, level, _ in found)
    active = next((section for section in sections if section.name == ACTIVE), None)
    if active is None:
        return Outline(sections, (), whole)
    inside = [one for one in found if active.start < one[0] < active.end]
    return Outline(sections, _cards(inside, active.end), whole)


def is_one_card(text: str, title: str) -> bool:
    """Whether a text is that card and nothing else, wherever it stands: it opens nothing that it does not close."""
    return text.count(BEGIN) == 1 and list(_headings(text)) == [(0, _CARD, title)]


def cards_of(text: str) -> tuple[CardPlace, ...]:
    """Every card of a text without sections, such as an archive."""
    return _cards(list(_headings(text)), len(text))


def _cards(headings: list[tuple[int, int, str]], end: int) -> tuple[CardPlace, ...]:
    begins = [(start, title) for start, level, title in headings if level == _CARD and title.startswith("MSG")]
    return tuple(CardPlace(title, start, behind) for start, title, behind in _spans(begins, end))


def _spans(begins: list[tuple[int, str]], end: int) -> Iterator[tuple[int, str, int]]:
    """Each beginning with the next one, the last with the end of all."""
    for step, (start, title) in enumerate(begins, 1):
        yield start, title, begins[step][0] if step < len(begins) else end


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """The start, level and title of each heading of the second or third level, and where nothing closes what opens."""
    marks = _marks(text)
    step = 0
    while step < len(marks):
        start = marks[step]
        step += 1
        line = text[start : _line_end(text, start)].rstrip("\r\n")
        if line.startswith(BEGIN):
            yield start, _CARD, line[4:].strip()
        elif (found := heading(line)) is not None:
            if found[0] in (_SECTION, _CARD):
                yield start, *found
        elif (behind := _hidden_until(text, start, line, marks, step)) is not None:
            while step < len(marks) and marks[step] < behind:
                step += 1
        elif opens_code(line) is not None or line.lstrip().startswith("<!--"):
            yield start, _UNCLOSED, ""


def _marks(text: str) -> list[int]:
    """The beginnings of all lines that may matter. Where nothing can hide a heading, only headings do."""
    if any(one in text for one in _UNUSUAL):
        return [0, *(mark.end() for mark in _MARK.finditer(text))]
    found, place = [0], text.find("\n##")
    while place >= 0:
        found.append(place + 1)
        place = text.find("\n##", place + 1)
    return found


def _hidden_until(text: str, start: int, line: str, marks: list[int], step: int) -> int | None:
    """Where the fenced block or the comment that begins here ends; None where nothing is hidden."""
    if (opened := opens_code(line)) is not None:
        for later in range(step, len(marks)):
            place = marks[later]
            end = _line_end(text, place)
            if closes_code(text[place:end].rstrip("\r\n"), opened):
                return end
    elif line.lstrip().startswith("<!--"):
        closed = text.find("-->", start)
        return None if closed < 0 else _line_end(text, closed)
    return None


def _line_end(text: str, start: int) -> int:
    """The place behind the line that holds this place."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def line_number(text: str, place: int) -> int:
    """The number of the line that holds this place."""
    return text.count("\n", 0, place) + 1


FIELDS: Final = {  # of a card, by the parts of the message that they say
    "From": "parties",
    "Date": "date",
    "Type": "type",
    "Priority": "priority",
    "Status": "status",
    "Subject": "subject",
    "Closure owner": "closure_owner",
    "Review scope": "review_scope",
    "Response needed by": "response_needed_by",
}
_KNOWN: Final = {name.lower(): name for name in (*FIELDS, "To")}
_REQUIRED: Final = ("Date", "Type", "Priority", "Status", "Subject")
_ARROW: Final = re.compile(r"(.+?)\s*(?:->|→)\s*(.+)")
_PARTS: Final = re.compile(r"\s+(?:—|\u2013|--)\s+|\s*\|\s*")
_LABEL: Final = re.compile(r"(?:\*\*)?(Summary|Ack)(?::?\*\*|:)?:?", re.IGNORECASE)
_OWN_ACK: Final = re.compile(r"Ack \(([^)]+)\)", re.IGNORECASE)
_CLOSED: Final = re.compile(r"closed(?:\s*[(:—-]+\s*([a-z]+)\)?)?")
_CLOSED_AS: Final = re.compile(r"Closed \(([a-z]+)\)")
_QUICK: Final = re.compile(
    r"### (?P<message_id>MSG-\d{8}-\d{3,9})\n\n\*\*From:\*\* (?P<sender>\S+) -> (?P<receiver>\S+)\n"
    r"\*\*Date:\*\* (?P<date>\S+)\n\*\*Type:\*\* (?P<type>\S+)\n\*\*Priority:\*\* (?P<priority>P[012])\n"
    r"\*\*Status:\*\* (?P<status>unread|acknowledged|blocked|actioned)\n\*\*Subject:\*\* (?P<subject>.+)\n"
    r"\*\*Closure owner:\*\* (?P<closure_owner>\S+)\n\*\*Review scope:\*\* (?P<review_scope>\S+)\n"
    r"\*\*Response needed by:\*\* (?P<response_needed_by>.+)\n",
    re.ASCII,
)


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
    problems: tuple[DocumentFinding, ...]


@lru_cache(maxsize=4096)  # from one command to the next, most cards stay as they are
def read_card_quickly(text: str) -> MailMessage | None:
    """The message of a card in exactly our own form, without its body and acknowledgements; None for any other."""
    found = _QUICK.match(text)
    said: dict[str, Any] = found.groupdict() if found is not None else {}
    return MailMessage(**{name: text.strip() for name, text in said.items()}) if said else None


class _CardReading:
    """What has been read of a card so far."""

    def __init__(self, text: str) -> None:
        self.lines = [line.rstrip("\r") for line in text.split("\n")]
        self.hidden = {one for begin, end in code_blocks(self.lines).items() for one in range(begin, end)}
        self.values: dict[str, str] = {}
        self.places: dict[str, int] = {}
        self.extra: dict[str, str] = {}
        self.problems: list[DocumentFinding] = []

    def field(self, name: str, value: str, place: int) -> None:
        known = _KNOWN.get(name.lower())
        if known is None:
            self.extra.setdefault(name, value)
        elif known in self.places:
            self.problem(place, "duplicate_field", f"a second {known} line; the first one counts")
        else:
            self.values[known], self.places[known] = value, place

    def problem(self, place: int, code: str, detail: str, *, warning: bool = False) -> None:
        self.problems.append(DocumentFinding(place, code, detail, "warning" if warning else "error"))


def read_card(text: str) -> Card:
    """The card that the text is, from its heading on."""
    reading = _CardReading(text)
    form: Literal["bold", "table"]
    form, begin = _header(reading)
    end = len(reading.lines)
    while end > begin and reading.lines[end - 1].strip() in ("", "---"):
        end -= 1
    acks, kept, ack_after, listed = _body(reading, form, begin, end)
    title = reading.lines[0].strip().removeprefix("###").strip().rstrip("#").strip()
    return Card(
        message=_message(reading, title, acks, original_body(trimmed_body("\n".join(kept)))),
        form=form,
        raw_status=reading.values.get("Status", ""),
        status_line=reading.places.get("Status"),
        ack_after=ack_after,
        listed=listed,
        problems=tuple(sorted(reading.problems, key=lambda problem: problem.line)),
    )


def _header(reading: _CardReading) -> tuple[Literal["bold", "table"], int]:
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


def _table(reading: _CardReading, place: int) -> int:
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


def _next(reading: _CardReading, place: int) -> int:
    """The next line that is not blank."""
    while place < len(reading.lines) and not reading.lines[place].strip():
        place += 1
    return place


def _body(reading: _CardReading, form: str, begin: int, end: int) -> tuple[list[Ack], list[str], int, bool]:
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


def _ack(reading: _CardReading, place: int, text: str) -> Ack:
    parts = [part.strip() for part in _PARTS.split(text, maxsplit=2)]
    if len(parts) == 3 and all(parts):  # noqa: PLR2004 - actor, date, reason
        return Ack(*parts)
    reading.problem(place, "ack_form", "an acknowledgement is written: actor — date — reason", warning=True)
    return Ack(parts[0] if len(parts) > 1 else "", parts[1] if len(parts) > 1 else "", parts[-1])


def _message(reading: _CardReading, title: str, acks: list[Ack], body: str) -> MailMessage:
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
    for name, value, allowed in (("Type", kind, MAIL_TYPES), ("Priority", priority, PRIORITIES)):
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


def _parties(reading: _CardReading) -> tuple[str, str]:
    given, to = reading.values.get("From", ""), reading.values.get("To", "")
    if not to and (found := _ARROW.fullmatch(given)):
        return found[1].strip(), found[2].strip()
    if not given or not to:
        place = reading.places.get("From", 0)
        reading.problem(place, "missing_field", "the From line is written: sender -> receiver")
    return given, to


def _status(reading: _CardReading) -> tuple[str, str | None]:
    """The status as it counts, and how the message was closed where that is what it says."""
    status = reading.values.get("Status", "").lower()
    if status == "new":
        return "unread", None
    if status in OPEN:
        return status, None
    if status in DISPOSITIONS:
        return "closed", status
    if (found := _CLOSED.fullmatch(status)) is not None:
        return "closed", found[1]
    if "Status" in reading.places:
        detail = f"Status {status[:40]!r} is none of {', '.join((*OPEN, 'closed'))}"
        reading.problem(reading.places["Status"], "unknown_status", detail)
    return status, None


# Bold text, headings and rules deeper than Markdown looks for them, and the first row of a card's table.
_OWN: Final = re.compile(r"(\s*)(\\*)(?=\*\*|\|\s*Field\s*\|)|((?: {4}|\s*[^\S ])\s*)(\\*)(?=#{1,6}(?:\s|\Z)|---)")


def trimmed_body(text: str) -> str:
    """The text without blank lines around it; spaces at its end are no text either."""
    lines = text.rstrip().split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    return "\n".join(lines[first:])


def contained_body(body: str) -> str:
    """The body as it stands in a card."""
    lines = markdown.contained(body).split("\n")
    for place in outside_code(lines):
        if found := _OWN.match(lines[place]):
            lines[place] = f"{lines[place][: found.end()]}\\{lines[place][found.end() :]}"
    return "\n".join(lines)


def original_body(text: str) -> str:
    """What `contained` was made from."""
    lines = text.split("\n")
    for place in outside_code(lines):
        found = _OWN.match(lines[place])
        if found is not None and (found[2] or found[4]):
            lines[place] = lines[place][: found.end() - 1] + lines[place][found.end() :]
    return markdown.original("\n".join(lines))


_BULLET: Final = re.compile(r"\s*[-*]\s+(.+)")
_NAMES: Final = {
    "revision": "revision",
    "format": "format",
    "payload format": "format",
    "review scope": "scope",
    "ask": "ask",
}
_FENCES: Final = {"unified-diff": "diff", "full-text": "text"}


def found_in(body: str) -> ReviewPayload | None:
    """The payload of a body; None where nothing names a revision, a format or an ask."""
    lines = body.split("\n")
    blocks = code_blocks(lines)
    values: dict[str, str] = {}
    files: list[str] = []
    listing = False
    place, content = 0, None
    while place < len(lines):
        if place in blocks:
            if values and content is None:
                content = "".join(f"{line}\n" for line in lines[place + 1 : blocks[place] - 1])
            place = blocks[place]
            continue
        bullet = _BULLET.fullmatch(lines[place])
        bare = (bullet[1] if bullet is not None else lines[place]).strip()
        pair = bold_field(bare) or plain_field(bare)
        name = pair[0].lower() if pair is not None else ""
        if pair is not None and name in _NAMES:
            values.setdefault(_NAMES[name], pair[1])
            listing = False
        elif pair is not None and name == "files":
            listing = True
            files += [one.strip() for one in pair[1].split(",") if one.strip()]
        elif listing and bullet is not None:
            files.append(bare)
        else:
            listing = listing and not bare
        place += 1
    if not values.keys() & {"revision", "format", "ask"}:
        return None
    return ReviewPayload(**values, files=tuple(files), content=content)


def payload_block(payload: ReviewPayload) -> str:
    """The lines of a payload, with a fence that its content cannot close."""
    lines = [
        f"Revision: {payload.revision}",
        f"Format: {payload.format}",
        f"Review scope: {payload.scope}",
        f"Ask: {payload.ask}",
        "Files:",
        *(f"  - {path}" for path in payload.files),
    ]
    if payload.content is not None:
        longest = max((len(run) for run in re.findall(r"^ {0,3}(`{3,})", payload.content, re.MULTILINE)), default=2)
        fence = "`" * (longest + 1)
        content = payload.content.removesuffix("\n")
        lines += ["", f"{fence}{_FENCES.get(payload.format, 'text')}", content, fence]
    return "\n".join(lines)


_DELIMITER: Final = frozenset(":-| \t\r\n")
HEADERS: Final[dict[str, tuple[str, ...]]] = {
    INBOX: ("Agent", "Unread", "Oldest unread", "Needs response by"),
    QUEUE: ("ID", "From -> To", "Priority", "Subject"),
    CLOSED: ("ID", "Date", "From -> To", "Final status", "Outcome"),
}


class TableEdit(msgspec.Struct, frozen=True):
    """A part of a text and what stands in its place."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[TableEdit]) -> str:
    """The text with all edits made; they do not overlap."""
    parts, last = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += [text[last : edit.start], edit.text]
        last = edit.end
    return "".join((*parts, text[last:]))


class RowPlace:
    """A row of a table: where its line is, and what its first cell says; most rows are looked for by that."""

    __slots__ = ("_line", "end", "first", "start")

    def __init__(self, start: int, end: int, line: str) -> None:
        self.start = start
        self.end = end
        self._line = line
        self.first = line.strip()[1:].partition("|")[0].strip() if "\\" not in line else next(iter(cells(line)), "")

    @property
    def cells(self) -> tuple[str, ...]:
        """What each cell says."""
        return cells(self._line)


class TablePlace:
    """The first table of a section; `top` is where its first row goes. The rows are read when they are asked for."""

    def __init__(self, text: str, header: tuple[str, ...], top: int, end: int) -> None:
        self._text = text
        self._end = end
        self.header = header
        self.top = top

    @property
    def is_plain(self) -> bool:
        """Whether each of its messages has one row, in the form in which `row_of` finds it."""
        names = {one.first for one in self.rows}
        own = all(self._text.startswith(f"| {one.first} |", one.start) for one in self.rows)
        return own and len(names) == len(self.rows) and self._text.find("\n| MSG-", self.bottom, self._end) < 0

    def row_of(self, message_id: str) -> RowPlace | None:
        """The row of a message in a plain table, found without reading all of them."""
        start = self._text.find(f"\n| {message_id} |", self.top - 1, self._end) + 1
        if start == 0:
            return None
        end = self._text.find("\n", start) + 1 or len(self._text)
        return RowPlace(start, end, self._text[start:end])

    @cached_property
    def rows(self) -> tuple[RowPlace, ...]:
        """Every line that follows and begins with a bar."""
        return tuple(self.from_top())

    def from_top(self) -> Iterator[RowPlace]:
        """The same, each read when it is asked for."""
        place, text = self.top, self._text
        while place < self._end:
            end = text.find("\n", place) + 1 or len(text)
            line = text[place : min(end, self._end)]
            if not (line.startswith("|") or line.lstrip().startswith("|")):
                break
            yield RowPlace(place, end, line)
            place = end

    @property
    def bottom(self) -> int:
        """Where a row is added at the end."""
        return self.rows[-1].end if self.rows else self.top


def find_table(text: str, section: MailboxSection) -> TablePlace | None:
    """The table of a section, half-edited or not."""
    place = section.inner
    while place < section.end:
        end = text.find("\n", place) + 1 or len(text)
        line = text[place : min(end, section.end)]
        if line.lstrip().startswith("|"):
            below = text[end : text.find("\n", end) + 1 or len(text)] if end < section.end else ""
            dashes = "-" in below and set(below) <= _DELIMITER
            return TablePlace(text, cells(line), end + len(below) if dashes else end, section.end)
        place = end
    return None


def cell(text: str) -> str:
    """A text for a table that every reader splits alike: a bar that is no separator looks like one."""
    return text.replace("|", "¦")


def snapshot_edits(text: str, table: TablePlace, wanted: Sequence[InboxRow], eol: str) -> list[TableEdit]:
    """What makes the rows say what the cards say; only rows that differ are written."""
    there = {place.first: place for place in reversed(table.rows)}
    edits, new = [], []
    for one in wanted:
        place = there.get(one.agent)
        said = (one.agent, str(one.unread), one.oldest_unread, one.needs_response_by)
        if place is None:
            new.append(row(said) + eol)
        elif place.cells != said:
            edits.append(TableEdit(place.start, place.end, row(said) + eol))
    if new:
        edits.append(_insert(text, table.bottom, "".join(new), eol))
    return edits


def queue_edits(
    text: str, table: TablePlace, wanted: Sequence[MailMessage], gone: str | None, eol: str
) -> list[TableEdit]:
    """What gives every open card its row, newest first, and takes away the row of the one that is gone."""
    there = {place.first: place for place in reversed(table.rows)}
    edits = [TableEdit(place.start, place.end, "") for place in table.rows if gone is not None and place.first == gone]
    at, waiting = table.top, []
    for message in wanted:
        place = there.get(message.message_id)
        if place is None:
            said = (message.message_id, message.parties, message.priority, cell(message.subject))
            waiting.append(row(said) + eol)
            continue
        if waiting:
            edits.append(_insert(text, place.start, "".join(waiting), eol))
            waiting = []
        at = place.end
    if waiting:
        edits.append(_insert(text, at, "".join(waiting), eol))
    return edits


def queue_row(text: str, place: int, message: MailMessage, eol: str) -> TableEdit:
    """The row of an open card, at a place in the queue."""
    said = (message.message_id, message.parties, message.priority, cell(message.subject))
    return _insert(text, place, row(said) + eol, eol)


def closed_edit(text: str, table: TablePlace, values: Iterable[str], eol: str) -> TableEdit:
    """A row on top of the closed summary."""
    return _insert(text, table.top, row(map(cell, values)) + eol, eol)


def _insert(text: str, place: int, lines: str, eol: str) -> TableEdit:
    """New lines at a place; what stands before it without a line end gets one."""
    begin = "" if place == 0 or text[place - 1] == "\n" else eol
    return TableEdit(place, place, begin + lines)


def empty(name: str) -> list[str]:
    """The lines of a section that has no rows yet."""
    return [f"## {name}", "", *([*table(HEADERS[name]), ""] if name in HEADERS else [])]
