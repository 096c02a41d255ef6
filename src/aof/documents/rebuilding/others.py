"""What people wrote into mailbox, charter and jobs, found beside what follows from the log, and added to it.

Must not know where files lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from aof.core.documents.mailbox import facts
from aof.core.errors.jobs import UnreadableJobs
from aof.core.jobs.job import REMOVED
from aof.core.model.events import Event
from aof.core.model.policy import Policy
from aof.documents import markdown
from aof.documents.charter import projection as charter
from aof.documents.jobs import projection as jobs
from aof.documents.mailbox import mailbox
from aof.documents.mailbox.mailbox import opened
from aof.documents.projection import Files

MAILBOX_FILES = (facts.PATH, facts.ARCHIVE)
CHARTER_FILES = (charter.PATH,)
JOBS_FILES = (jobs.PATH,)


def mailbox_of(policy: Policy) -> Callable[[dict[str, str], Sequence[Files], Sequence[Event]], dict[str, str]]:
    """Messages that people wrote as cards of their own, under IDs that the log never gave."""

    def with_hand_written(told: dict[str, str], sides: Sequence[Files], events: Sequence[Event]) -> dict[str, str]:
        text, archive = told.get(facts.PATH, ""), told.get(facts.ARCHIVE, "")
        given = {event.payload["messageId"] for event in events if event.type == facts.SENT}
        for side in sides:
            box = opened(side.text(facts.PATH))
            for place in reversed(box.outline.cards):
                message = box.card(place).message
                if message.message_id in given or f"### {message.message_id}" in text:
                    continue
                text = mailbox.complete(text, f"Mailbox — {policy.project}")
                text = mailbox.with_message(text, message, policy)
            archive = _with_lines(archive, side.text(facts.ARCHIVE), given)
        kept = {facts.ARCHIVE: archive} if archive else {}
        return told | kept | {facts.PATH: text}

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
        step = charter.changed("" if event.type == charter.CREATED else step, event)
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
    known = jobs.parsed(told.get(jobs.PATH, ""))
    named = {event.payload.get("job") for event in events if event.type.startswith(jobs.TYPES)}
    named |= {event.payload.get("job") for event in events if event.type == REMOVED}
    extra = dict(known.jobs)
    for side in sides:
        with suppress(UnreadableJobs):
            for name, job in jobs.parsed(side.text(jobs.PATH)).jobs.items():
                if name not in named:
                    extra.setdefault(name, job)
    if not extra and not told.get(jobs.PATH):
        return told
    return told | {jobs.PATH: jobs.rendered(jobs.JobsFile(rev=known.rev, jobs=extra))}
