"""Every document that follows the log, by name; and how one that git has merged is rewritten from the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from aof.documents import charter, mail_rules, mailbox, markdown, worklog_text
from aof.documents.charter import CharterDocument
from aof.documents.mailbox import MailboxDocument, opened
from aof.documents.merge_marks import is_marked, sides
from aof.documents.projection import LOCK, Extension, Facts, Files, PastEvents, Projection, Rewritten, lock_of
from aof.documents.worklog import ENTRY, RESTORED, WorklogFile, originals, restored, without_rows
from aof.documents.worklog_text import ARCHIVE, EDITS, IDLE, PATH, Entry, Worklog, parse_worklog
from aof.errors import UnreadableJobs
from aof.jobs import rules as jobs_rules
from aof.jobs.rules import REMOVED, JobsDocument
from aof.kernel.model import Event, Policy

TYPE_CHECKING = False


# What the log alone says, by file; each side's files; every event, oldest first: the same with what people wrote.
Additions = Callable[[dict[str, str], Sequence[Files], Sequence[Event]], dict[str, str]]


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
        texts = self._additions({path: _titled(text, path, each) for path, text in told.texts.items()}, each, events)
        return Rewritten({path: text for path, text in texts.items() if text}, told.note)


def _titled(text: str, path: str, each: Sequence[Files]) -> str:
    """With the title that the file has: each clone would name its own folder where nobody has set a project."""
    titles = [title for side in each if (title := side.text(path).partition("\n")[0]).startswith("# ")]
    first, end, rest = text.partition("\n")
    return f"{min(titles)}{end}{rest}" if titles and first.startswith("# ") else text


FILES = (PATH, ARCHIVE, EDITS)
_NO_PROSE = ("#", "|", "---", "Now Working (")


def with_hand_written(told: dict[str, str], sides: Sequence[Files], events: Sequence[Event]) -> dict[str, str]:
    """The WORKLOG with every entry and line that some side has and the log does not; what people rewrote is kept."""
    text = told.get(PATH) or next((side.text(PATH) for side in sides if side.text(PATH)), "")
    archive = told.get(ARCHIVE, "")
    restored_sides = [originals(side.text(PATH), events, _entry, nearby=False) for side in sides]
    by_hand = [edit for _, found in restored_sides for edit in found]
    by_hand += [edit for side in sides for _, edit in markdown.kept_edits(side.text(EDITS))]
    said = {_entry(event) for event in events}  # and what somebody has settled
    said |= {one["text"] for event in events if event.type == RESTORED for one in event.payload.get("edits", ())}
    by_hand = [edit for edit in without_rows(by_hand) if edit.text not in said]
    kept = markdown.with_kept("", PATH, sorted(_whole(by_hand, said), key=lambda edit: (edit.text, edit.what)))
    known = [*parse_worklog(text).entries, *parse_worklog(archive).entries]
    extra: dict[tuple[str, str, str], Entry] = {}
    for side, (own, _) in zip(sides, restored_sides, strict=True):
        for entry in _unknown(known, [*parse_worklog(side.text(ARCHIVE)).entries, *parse_worklog(own).entries]):
            extra[entry.date, entry.time, entry.text] = entry
    for key in sorted(extra):
        text = _with_entry(text, extra[key])
    for own, _ in restored_sides:
        text = _with_prose(_with_pinned(text, parse_worklog(own)), own)
    return told | {EDITS: kept, PATH: text}


def _whole(by_hand: Sequence[markdown.HandEdit], said: Iterable[str | None]) -> list[markdown.HandEdit]:
    """The edits without those that git has mixed from another one and the original."""
    there = {edit.text: edit for edit in by_hand}
    log = {line for text in said for line in (text or "").split("\n")}
    for text in sorted(there):
        if any(set(text.split("\n")) <= log.union(other.split("\n")) for other in there if other != text):
            del there[text]
    return list(there.values())


def _entry(event: Event) -> str | None:
    return event.payload["text"] if event.type == ENTRY else None


def _unknown(known: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries of a side beyond those that the log has of the same author and minute."""
    left = Counter(entry.anchor for entry in known)
    said = Counter(entry.text for entry in known)
    others = []
    for entry in entries:
        if said[entry.text]:
            said[entry.text] -= 1
            left[entry.anchor] -= 1
        else:
            others.append(entry)
    for entry in others:
        if left[entry.anchor] > 0:
            left[entry.anchor] -= 1
        else:
            yield entry


def _with_entry(text: str, entry: Entry) -> str:
    """The entry in the session of its day; one of a day that has none gets a session at the end."""
    one = {"text": entry.text, "date": entry.date, "instead": ""}
    if any(session.date == entry.date for session in parse_worklog(text).sessions):
        return restored(text, [one])
    number = max((session.number for session in parse_worklog(text).sessions), default=0)
    appender = worklog_text.Appender(markdown.ending(text), number, "")
    appender.add(entry.text, entry.date)
    return (text if text.endswith("\n") else f"{text}\n") + appender.text()


def _with_pinned(text: str, side: Worklog) -> str:
    """Pinned lines that only a person has written."""
    there = {line.key: line.text.strip() for line in parse_worklog(text).status}
    for line in sorted(side.status, key=lambda line: line.key):
        said = line.text.strip()
        if said and said != IDLE and there.get(line.key, "") in ("", IDLE) and not (line.agent and line.key in there):
            text = worklog_text.with_status(text, line.key, said)
    return text


def _with_prose(text: str, side: str) -> str:
    """Lines that belong to no entry, no heading and no table go below the pinned block, each once."""
    known = parse_worklog(side)
    covered = {line.number for line in known.status}
    for entry in known.entries:
        covered.update(range(entry.line, entry.line + entry.text.count("\n") + 1))
    there = set(markdown.unix(text).split("\n"))
    lines = [line for line in markdown.scan(side) if line.number not in covered and line.text.strip()]
    loose = [line.text for line in lines if line.text not in there and not line.text.startswith(_NO_PROSE)]
    if not loose:
        return text
    end, split, at = markdown.ending(text), markdown.split_lines(text), parse_worklog(text).status_end
    block = [end, *(f"{line}{end}" for line in loose)]
    return "".join([*split[:at], *block, *split[at:]])


MAILBOX_FILES = (mail_rules.PATH, mail_rules.ARCHIVE)
CHARTER_FILES = (charter.PATH,)
JOBS_FILES = (jobs_rules.PATH,)


def mailbox_of(policy: Policy) -> Callable[[dict[str, str], Sequence[Files], Sequence[Event]], dict[str, str]]:
    """Messages that people wrote as cards of their own, under IDs that the log never gave."""

    def with_hand_written(told: dict[str, str], sides: Sequence[Files], events: Sequence[Event]) -> dict[str, str]:
        text, archive = told.get(mail_rules.PATH, ""), told.get(mail_rules.ARCHIVE, "")
        given = {event.payload["messageId"] for event in events if event.type == mail_rules.SENT}
        for side in sides:
            box = opened(side.text(mail_rules.PATH))
            for place in reversed(box.outline.cards):
                message = box.card(place).message
                if message.message_id in given or f"### {message.message_id}" in text:
                    continue
                text = mailbox.complete(text, f"Mailbox — {policy.project}")
                text = mailbox.with_message(text, message, policy)
            archive = _with_lines(archive, side.text(mail_rules.ARCHIVE), given)
        kept = {mail_rules.ARCHIVE: archive} if archive else {}
        return told | kept | {mail_rules.PATH: text}

    return with_hand_written


def _with_lines(archive: str, side: str, given: set[str]) -> str:
    """Archived cards that the log never gave; each once."""
    for card in side.split("\n### ")[1:]:
        title = card.split("\n", 1)[0].strip()
        if title not in given and f"### {title}" not in archive:
            archive = f"{archive.rstrip()}\n\n### {card.rstrip()}\n"
    return archive


def charter_with_hand_written(told: dict[str, str], sides: Sequence[Files], events: Sequence[Event]) -> dict[str, str]:
    """Each line that no event ever wrote goes behind the line that stood before it."""
    text = told.get(charter.PATH, "")
    if not text:
        return told | {charter.PATH: next((side.text(charter.PATH) for side in sides if side.text(charter.PATH)), "")}
    written: set[str] = set()
    step = ""
    for event in events:
        step = charter.text_after("" if event.type == charter.CREATED else step, event)
        written.update(markdown.unix(step).split("\n"))
    end = markdown.ending(text)
    lines = markdown.unix(text).split("\n")
    for side in sides:
        before = ""
        for line in markdown.unix(side.text(charter.PATH)).split("\n"):
            if line.strip() and line not in written and line not in lines:
                at = lines.index(before) + 1 if before in lines else len(lines)
                lines.insert(at, line)
            before = line if line in lines else before
    return told | {charter.PATH: end.join(lines)}


def jobs_with_hand_written(told: dict[str, str], sides: Sequence[Files], events: Sequence[Event]) -> dict[str, str]:
    """Jobs that the log never heard of, as a person has written them."""
    known = jobs_rules.parse_jobs(told.get(jobs_rules.PATH, ""))
    named = {event.payload.get("job") for event in events if event.type.startswith(jobs_rules.TYPES)}
    named |= {event.payload.get("job") for event in events if event.type == REMOVED}
    extra = dict(known.jobs)
    for side in sides:
        with suppress(UnreadableJobs):
            for name, job in jobs_rules.parse_jobs(side.text(jobs_rules.PATH)).jobs.items():
                if name not in named:
                    extra.setdefault(name, job)
    if not extra and not told.get(jobs_rules.PATH):
        return told
    return told | {jobs_rules.PATH: jobs_rules.render_jobs(jobs_rules.JobsFile(rev=known.rev, jobs=extra))}


# Each with its files, and what adds to them what people wrote, as the settings want it.
_DOCUMENTS: dict[str, tuple[Callable[[Policy], Projection], tuple[str, ...], Callable[[Policy], Additions]]] = {
    "WORKLOG": (WorklogFile, FILES, lambda _: with_hand_written),
    "MAILBOX": (MailboxDocument, MAILBOX_FILES, mailbox_of),
    "CHARTER": (CharterDocument, CHARTER_FILES, lambda _: charter_with_hand_written),
    "JOBS": (JobsDocument, JOBS_FILES, lambda _: jobs_with_hand_written),
}


LOCKS = frozenset(map(lock_of, _DOCUMENTS))


def projections(policy: Policy, *, anew: bool = False) -> Iterator[Projection]:
    """All documents, as the settings want them; `anew` where git may have merged their files in any way."""
    return (_made(name, policy, anew=anew) for name in _DOCUMENTS)


def locked_documents(names: Iterable[str], policy: Policy) -> list[Projection]:
    """The documents whose locks are among these."""
    return [_made(name.removeprefix(LOCK), policy) for name in sorted(names) if name.startswith(LOCK)]


def _made(name: str, policy: Policy, *, anew: bool = False) -> Projection:
    document, files, additions = _DOCUMENTS[name]
    return RebuiltDocument(document(policy), files, additions(policy), anew=anew)
