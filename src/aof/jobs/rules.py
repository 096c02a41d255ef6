"""Jobs: the record, cron expressions, when one is due, the file jobs.json, and the commands about jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import takewhile
from typing import Any, ClassVar, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from aof.documents import projection
from aof.documents.projection import DocumentCommand, Facts, Files, PastEvents, Projection, Rewritten
from aof.errors import (
    AofError,
    Call,
    IdTaken,
    InvalidInput,
    JobExists,
    JobNotFound,
    NotAllowed,
    PayloadTooLarge,
    UnreadableJobs,
    UnreadableTask,
)
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Create, Decide, Decision, Needs, NeedsOf, Records, Verdict
from aof.kernel.events import Draft, Event
from aof.kernel.findings import suggestion
from aof.kernel.kinds import Priority
from aof.kernel.model import Policy, is_agent_name, iso, millis
from aof.org import rights
from aof.support import nesting
from aof.support.typed import prepare_type
from aof.tasks.fields import malformed

ADDED: Final = "document.job.added"
PAUSED: Final = "document.job.paused"
RESUMED: Final = "document.job.resumed"
DISPATCHED: Final = "document.job.dispatched"
FAILED: Final = "document.job.failed"
REMOVED: Final = "document.job.removed"
LINK: Final = "job"  # the kind of the edge from a task to the job that made it


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The form of all parts of a job."""


class JobTask(_Part, frozen=True, kw_only=True):
    """What a task that a job creates is like, in the words of `create`."""

    title: str
    brief: str = ""
    agent: str | None = None
    role: str | None = None
    team: str | None = None
    priority: Priority = "normal"
    tags: tuple[str, ...] = ()
    workflow: str | None = None
    parent_id: str | None = None
    resource: str | None = None
    review: bool = True


class JobOutcome(_Part, frozen=True, kw_only=True):
    """What has come of one occasion: a task, or why there is none."""

    occasion: str
    at: str
    task_id: str | None = None
    error: str | None = None


class Job(_Part, frozen=True, kw_only=True):
    """A schedule with the task that it creates each time, or a batch of tasks that are created once, in order.

    `handled` is the last due time that is over with; of a batch `done` says how many items are. `last` is what came of
    the last occasion; of a batch `outcomes` has that of each item. `rev` is the log's number of its last event.
    """

    id: str
    created_by: str
    created_at: str
    rev: int = 0
    cron: str | None = None
    at: str | None = None
    timezone: str = "UTC"
    missed: str = "once"
    task: JobTask | None = None
    items: tuple[JobTask, ...] = ()
    paused: bool = False
    handled: str = ""
    done: int = 0
    created: int = 0
    last: JobOutcome | None = None
    outcomes: tuple[JobOutcome, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it by itself."""
        if self.items:
            return self.done >= len(self.items)
        return self.at is not None and self.handled >= self.at


def item_of(occasion: str) -> int | None:
    """The number of the item that an occasion of a batch is about; None for every other occasion."""
    number = occasion.removeprefix("item ")
    return int(number) - 1 if number != occasion else None


def evolve_jobs(jobs: dict[str, Job], event: Event) -> dict[str, Job]:
    """The jobs after an event about one of them; one that is not there changes nothing."""
    name = str(event.payload.get("job"))
    if event.type == ADDED:
        fresh = event.payload["record"] | {"rev": event.seq, "createdAt": event.timestamp, "handled": event.timestamp}
        return jobs | {name: msgspec.convert(fresh, prepare_type(Job))}
    job = jobs.get(name)
    if job is None or event.seq <= job.rev:
        return jobs
    if event.type == REMOVED:
        return {other: one for other, one in jobs.items() if other != name}
    return jobs | {name: msgspec.structs.replace(job, rev=event.seq, **_changes(job, event))}


def _changes(job: Job, event: Event) -> dict[str, Any]:
    if event.type == PAUSED:
        return {"paused": True}
    if event.type == RESUMED:  # what came due meanwhile was left out on purpose
        return {"paused": False, "handled": max(job.handled, event.timestamp)}
    payload = event.payload
    outcome = JobOutcome(
        occasion=payload["occasion"],
        at=event.timestamp,
        task_id=payload.get("taskId"),
        error=payload.get("error"),
    )
    changes: dict[str, Any] = {"last": outcome, "created": job.created + (outcome.task_id is not None)}
    number = item_of(outcome.occasion)
    if number is not None:
        changes |= {"done": max(job.done, number + 1), "outcomes": (*job.outcomes, outcome)}
    elif payload.get("due"):
        changes["handled"] = max(job.handled, payload["due"])
    return changes


_LONGEST: Final = 200
_MACROS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SUNDAY: Final = 7


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()  # the first one stands for the least value


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, _SUNDAY, _WEEKDAYS),
)


class Cron(NamedTuple):
    """What an expression allows. Weekdays count from Sunday, which is 0.

    `either` says that both fields of days are restricted: then a day needs to match only one of them, as everywhere
    with cron. `hourly` says that the hours are not fixed times of day, so that the real time counts and not the
    clock on the wall.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    hourly: bool

    def on(self, day: date) -> bool:
        """Whether the expression allows this day."""
        if day.month not in self.months:
            return False
        by_number, by_name = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_number or by_name if self.either else by_number and by_name


def parse_cron(text: object) -> Cron | InvalidInput:
    """The expression, or what is wrong with it."""
    if not isinstance(text, str) or not text.isascii() or len(text) > _LONGEST:
        return _wrong("a cron expression is a short text")
    words = _MACROS.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        return _wrong(f"a cron expression has {len(_FIELDS)} fields, and this one has {len(words)}")
    found: list[frozenset[int]] = []
    for field, word in zip(_FIELDS, words, strict=True):
        values = _values(field, word.lower())
        if isinstance(values, InvalidInput):
            return values
        found.append(values)
    minutes, hours, days, months, weekdays = found
    return Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=frozenset(day % _SUNDAY for day in weekdays),
        either=not words[2].startswith("*") and not words[4].startswith("*"),
        hourly=words[1].startswith("*"),
    )


def _values(field: _Field, word: str) -> frozenset[int] | InvalidInput:
    """All values of a field: a list of single values and ranges, each with a step if it has one."""
    found: set[int] = set()
    for part in word.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            low, high = field.least, min(field.most, 6) if field.words == _WEEKDAYS else field.most
        else:
            low = _number(field, first)
            high = _last(field, last) if dash else field.most if slash else low
        every = int(step) if step.isdecimal() and len(step) <= 2 else 0 if slash else 1  # noqa: PLR2004 - two digits
        if not (field.least <= low <= high <= field.most) or not 1 <= every <= field.most:
            return _wrong(f"'{part[:40]}' is not a valid {field.name} ({field.least} to {field.most})")
        found.update(range(low, high + 1, every))
    return frozenset(found)


def _last(field: _Field, word: str) -> int:
    """The number at the end of a range: a week may end with Sunday, though it also begins with it."""
    return _SUNDAY if field.words is _WEEKDAYS and word == _WEEKDAYS[0] else _number(field, word)


def _number(field: _Field, word: str) -> int:
    """The number that a word stands for; -1 for what is none."""
    if word in field.words:
        return field.least + field.words.index(word)
    return int(word) if word.isdecimal() and len(word) <= 2 else -1  # noqa: PLR2004 - two digits


def _wrong(what: str) -> InvalidInput:
    return InvalidInput(
        what, "give minute, hour, day of month, month and day of week, such as '30 6 * * mon-fri', or @daily"
    )


Missed = Literal["skip", "once", "all"]
MISSED: Final[tuple[Missed, ...]] = ("skip", "once", "all")
GRACE_MS: Final = 300_000  # what is later than this was missed
MOST_MISSED: Final = 100
_DAYS: Final = 366 * 9  # 29 February may be eight years away
_DAY: Final = timedelta(days=1)
_ZONE: Final = 64
_LAST: Final = millis("9000-01-01")


def zone(name: str) -> tzinfo | InvalidInput:
    """The time zone of that name. Its rules are a table that the system brings along."""
    if name == "UTC":
        return UTC
    try:
        if len(name) <= _ZONE and name.isascii():
            return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # no such file, a folder, not the name of a zone at all
        pass
    return InvalidInput(
        f"there is no time zone '{name[:80]}' on this machine", "use a name such as Europe/Berlin, or UTC"
    )


def moment(text: str, where: tzinfo) -> int | InvalidInput:
    """A time that a person gave; without an offset it is meant in the job's time zone."""
    try:
        given = datetime.fromisoformat(text)
        found = millis((given if given.tzinfo is not None else given.replace(tzinfo=where)).isoformat())
    except (ValueError, OverflowError):
        found = _LAST
    if 0 <= found < _LAST:
        return found
    return InvalidInput(f"'{text[:80]}' is not a time", "give a time such as 2026-03-02T09:00 or 2026-03-02T09:00Z")


def next_after(cron: Cron, where: tzinfo, after: int) -> int | None:
    """The first due time after a moment; None where no such day comes, as with 30 February."""
    first = _local_day(after, where) - _DAY
    for number in range(_DAYS):
        day = first + number * _DAY
        later = [one for one in _on(cron, where, day) if one > after]
        if later:  # a time that was jumped over may lie behind the first ones of the next day
            return min((*later, *(one for one in _on(cron, where, day + _DAY) if one > after)))
    return None


def latest(cron: Cron, where: tzinfo, after: int, until: int, most: int) -> tuple[int, ...]:
    """The newest due times after one moment and up to another, oldest first; at most so many."""
    found: set[int] = set()
    enough: date | None = None
    earliest = _local_day(max(after, 0), where) - _DAY
    day = _local_day(until, where) + _DAY
    for _ in range(_DAYS):
        if day < earliest or (enough is not None and enough - day > _DAY):
            break
        found.update(one for one in _on(cron, where, day) if after < one <= until)
        enough = day if enough is None and len(found) >= most else enough
        day -= _DAY
    return tuple(sorted(found)[-most:])


def _on(cron: Cron, where: tzinfo, day: date) -> Iterator[int]:
    """All due times of a local day, in no order that counts."""
    if not cron.on(day):
        return
    for hour in cron.hours:
        for minute in cron.minutes:
            wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=where)
            once = wall.astimezone(UTC)
            again = wall.replace(fold=1).astimezone(UTC)
            if once != again and cron.hourly:
                if once < again:  # it comes twice; were it the other way round, it would not come at all
                    yield millis(once.isoformat())
                    yield millis(again.isoformat())
            else:
                yield millis(once.isoformat())


def _local_day(at: int, where: tzinfo) -> date:
    return datetime.fromisoformat(iso(at)).astimezone(where).date()


def due_times(times: Cron | int, where: tzinfo, missed: Missed, handled: int, now: int) -> tuple[int, ...]:
    """The due times that are to be made up for now, oldest first, after the last one that was handled.

    `once` makes up for the newest only, `all` for the newest hundred; `skip` is like `once`, but leaves out what is
    late by more than a few minutes.
    """
    since = max(handled, now - GRACE_MS - 1) if missed == "skip" else handled
    if isinstance(times, int):
        return (times,) if since < times <= now else ()
    return latest(times, where, since, now, MOST_MISSED if missed == "all" else 1)


MOST_ITEMS: Final = 500
MOST_JOBS: Final = 200
_BYTES: Final = 400_000
_ID: Final = 64
_AT_ONCE: Final = 50  # items of a batch in one turn of the scheduler


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """One time that a job creates a task: a due time, an item of a batch, or because somebody asked."""

    name: str
    task: JobTask
    due: str | None = None


def job_problem(job: Job) -> AofError | None:
    """Why a job cannot be accepted, as somebody has described it."""
    if not is_agent_name(job.id) or len(job.id) > _ID:
        return InvalidInput(
            f"'{job.id[:80]}' cannot name a job", f"use up to {_ID} letters, digits and . _ - @ : +, such as nightly"
        )
    if sum((job.cron is not None, job.at is not None, bool(job.items))) != 1:
        return InvalidInput(
            "a job has a cron expression, or a time, or items", "give exactly one of cron, at and items"
        )
    if (job.task is None) != bool(job.items):
        return InvalidInput("a schedule has one task and a batch has items", "give a title, or items with titles")
    if len(job.items) > MOST_ITEMS:
        return kernel_limits.items("items", ["item"] * len(job.items), MOST_ITEMS)
    tasks = job.items or (job.task,)
    return (
        kernel_limits.data("the job", msgspec.to_builtins(job), _BYTES)
        or kernel_limits.choice("missed", job.missed, MISSED)
        or next((wrong for task in tasks if task and (wrong := _bad_task(task))), None)
        or _bad_times(job)
    )


def _bad_task(task: JobTask) -> AofError | None:
    routing = {"agent": task.agent, "role": task.role, "team": task.team, "workflow": task.workflow, "tags": task.tags}
    return malformed(
        {
            "title": task.title,
            "body": task.brief,
            "priority": task.priority,
            "parentId": task.parent_id,
            "resource": task.resource,
            "routing": routing,
        }
    )


def _bad_times(job: Job) -> AofError | None:
    for given in (job.created_at, job.handled):
        when = moment(given, UTC)
        if isinstance(when, AofError):
            return when
    if not 0 <= job.done <= len(job.items):
        return InvalidInput(f"{job.done} of {len(job.items)} items cannot be done", "correct 'done'")
    schedule = _schedule(job)
    if isinstance(schedule, AofError):
        return schedule
    times, where = schedule
    if isinstance(times, Cron) and next_after(times, where, millis(job.created_at)) is None:
        return InvalidInput(f"'{job.cron}' never comes", "choose a day that there is")
    return None


def _schedule(job: Job) -> tuple[Cron | int | None, tzinfo] | AofError:
    """The times of a job, None for a batch, which has none, and its time zone; or what is wrong with them."""
    where = zone(job.timezone)
    if isinstance(where, AofError):
        return where
    times = moment(job.at, where) if job.at is not None else None if job.cron is None else parse_cron(job.cron)
    return times if isinstance(times, AofError) else (times, where)


def due_occasions(job: Job, now: int) -> tuple[Occasion, ...]:
    """The occasions of a job that are to be taken now, in order; of a batch only the next few items."""
    if job.paused or job.ended:
        return ()
    if job.items:
        coming = enumerate(job.items[job.done : job.done + _AT_ONCE], job.done + 1)
        return tuple(Occasion(name=f"item {number}", task=task) for number, task in coming)
    schedule = _schedule(job)
    if isinstance(schedule, AofError):
        return ()
    times, where = schedule
    if times is None or job.task is None:
        return ()
    policy = next(one for one in MISSED if one == job.missed)
    found = due_times(times, where, policy, millis(job.handled), now)
    return tuple(Occasion(name=iso(one), task=job.task, due=iso(one)) for one in found)


def next_due(job: Job, now: int) -> int | None:
    """When the next occasion comes; None where none does, or only after somebody resumes the job."""
    if job.paused or job.ended:
        return None
    if job.items:
        return now
    schedule = _schedule(job)
    if isinstance(schedule, AofError):
        return None
    times, where = schedule
    if times is None:
        return None
    if isinstance(times, int):
        return times if times > now else None
    return next_after(times, where, max(now, millis(job.handled)))


def by_hand(job: Job, now: int) -> tuple[Occasion, ...]:
    """The occasions of a job that somebody runs now, whatever its schedule says."""
    if job.items:
        return due_occasions(msgspec.structs.replace(job, paused=False), now)
    return (Occasion(name=f"by hand {iso(now)}", task=job.task),) if job.task is not None else ()


NAME: Final = "JOBS"
PATH: Final = "jobs.json"
TYPES: Final = ("document.job.",)


class UnusableJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that makes no sense as somebody has left it: its text, which stays, and why."""

    text: msgspec.Raw
    error: UnreadableJobs


class JobsFile(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs by name. `rev` is the log's number of the last event that the file knows of."""

    rev: int = 0
    jobs: dict[str, Job] = {}
    unusable: dict[str, UnusableJob] = {}

    def after(self, event: Event) -> JobsFile:
        """The jobs after one more event. A job that cannot be used can only be removed."""
        name = event.payload.get("job")
        gone = event.type == REMOVED
        unusable = {other: one for other, one in self.unusable.items() if not (gone and other == name)}
        return JobsFile(rev=event.seq, jobs=evolve_jobs(self.jobs, event), unusable=unusable)


class _Outline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file, with the text of each job."""

    rev: int = 0
    jobs: dict[str, msgspec.Raw] = {}


class JobsDocument(Projection):
    """The file of all jobs."""

    name, path, types, files = NAME, PATH, TYPES, (PATH,)

    def updated(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:  # noqa: ARG002 - the contract
        """What the file does not know of yet is applied to the jobs as a person has left them."""
        text = files.text(PATH)
        if not text and not fresh and past is None:
            return Rewritten({})
        known = file = parse_jobs(text)
        unwritten = takewhile(lambda event: event.seq > known.rev, past.events if past is not None else ())
        for event in (*reversed(list(unwritten)), *fresh):
            if event.seq > file.rev:
                file = file.after(event)
        return Rewritten({PATH: render_jobs(file)} if file.rev != known.rev else {})

    def with_hand_written(
        self, from_log: dict[str, str], sides: Sequence[Files], events: Sequence[Event]
    ) -> dict[str, str]:
        """Jobs that the log never heard of, as a person has written them."""
        known = parse_jobs(from_log.get(PATH, ""))
        logged = {event.payload.get("job") for event in events if event.type.startswith(TYPES)}
        jobs = dict(known.jobs)
        for side in sides:
            with suppress(UnreadableJobs):
                for name, job in parse_jobs(side.text(PATH)).jobs.items():
                    if name not in logged:
                        jobs.setdefault(name, job)
        if not jobs and not from_log.get(PATH):
            return {}
        return {PATH: render_jobs(JobsFile(rev=known.rev, jobs=jobs))}


def render_jobs(file: JobsFile) -> str:
    """The text of the file."""
    jobs = file.jobs | {name: one.text for name, one in file.unusable.items()}
    data = msgspec.json.encode({"rev": file.rev, "jobs": dict(sorted(jobs.items()))})
    return msgspec.json.format(data, indent=2).decode() + "\n"


def parse_jobs(text: str) -> JobsFile:
    """The jobs in the file, and those that make no sense; raises UnreadableJobs where they cannot be told apart."""
    if not text.strip():
        return JobsFile()
    try:
        found = nesting.decode_json(text, _Outline)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise _unreadable(str(error), "correct it, or move it away: then the log writes it anew") from None
    jobs: dict[str, Job] = {}
    unusable: dict[str, UnusableJob] = {}
    for name, raw in found.jobs.items():
        job = _job(name, raw)
        if isinstance(job, UnreadableJobs):
            unusable[name] = UnusableJob(text=raw, error=job)
        else:
            jobs[name] = job
    return JobsFile(rev=found.rev, jobs=jobs, unusable=unusable)


def _job(name: str, raw: msgspec.Raw) -> Job | UnreadableJobs:
    hint = f"correct it in {PATH}, or remove it: aof job rm {name[:80]}"
    try:
        job = nesting.decode_json(bytes(raw), Job)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        return _unreadable(f"job '{name[:80]}': {error}", hint)
    if name != job.id:
        return _unreadable(f"the job '{name[:80]}' calls itself '{job.id[:80]}'", hint)
    wrong = job_problem(job)
    return job if wrong is None else _unreadable(f"job '{name[:80]}': {wrong.message}", hint)


def _unreadable(why: str, hint: str) -> UnreadableJobs:
    return UnreadableJobs(f"{PATH} cannot be used: {why}", hint, path=PATH)


_LARGEST: Final = 2_000_000


class JobCommand(DocumentCommand, frozen=True, kw_only=True):
    """A command about one job."""

    document: ClassVar[str] = NAME
    reads: ClassVar[frozenset[str]] = frozenset({PATH})

    job_id: str

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Check who may do it, then apply `change`. What AOF does by itself needs no right."""
        if self.outside:
            refused = projection.speaker_refusal(records.policy, self) or _no_lead(records.policy, self.acting)
            if refused is not None:
                return refused
        try:
            return self.change(records, parse_jobs(records.documents[PATH]), now, decide)
        except AofError as error:
            return error

    def change(self, records: Records, file: JobsFile, now: int, decide: Decide) -> Verdict:
        """What it does to the jobs as they are."""
        raise NotImplementedError

    def record(self, kind: str, **more: Any) -> Draft:
        """The event of what it has done to the job."""
        return Draft(type=kind, task_id="", payload={"document": NAME, "job": self.job_id, **more})


class AddJob(JobCommand, frozen=True, kw_only=True):
    """Accept a new job."""

    job: Job

    def change(self, records: Records, file: JobsFile, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the rule's signature
        """A name stands for one job."""
        new = msgspec.structs.replace(self.job, created_by=self.acting, created_at=iso(now), handled=iso(now))
        wrong = job_problem(new)
        if wrong is not None:
            return wrong
        if new.at is not None and new.at <= new.created_at:
            return InvalidInput(f"{new.at} is over", "choose a time that is to come")
        if self.job_id in file.jobs or self.job_id in file.unusable:
            return JobExists(
                f"there is a job '{self.job_id}' already",
                "choose another name, or remove that one",
                Call("job_show", {"job_id": self.job_id}),
            )
        size = len(render_jobs(msgspec.structs.replace(file, jobs=file.jobs | {new.id: new})))
        if len(file.jobs) + len(file.unusable) >= MOST_JOBS or size > _LARGEST:
            return PayloadTooLarge(
                f"there are {len(file.jobs)} jobs, and no room for more", "remove jobs that have ended"
            )
        return Decision(drafts=(self.record(ADDED, record=msgspec.to_builtins(new)),))


class ChangeJob(JobCommand, frozen=True, kw_only=True):
    """Pause a job, resume or remove it; what it has created stays."""

    event: str

    def change(self, records: Records, file: JobsFile, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the rule's signature
        """The changed job; the same change again has no effect."""
        if self.event == REMOVED and self.job_id in file.unusable:
            return Decision(drafts=(self.record(self.event),))
        job = find_job(file, self.job_id)
        if self.event != REMOVED and job.paused == (self.event == PAUSED):
            return Decision()
        return Decision(drafts=(self.record(self.event),))


class DispatchJob(JobCommand, frozen=True, kw_only=True):
    """Let a job create the task of one occasion, unless it has or the job is another by now.

    `seen` is the job's number when the occasion was found. `unusable` says why no task can be made of it.
    """

    seen: int
    occasion: str
    due: str | None
    create: Create
    unusable: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What the creation of a task needs as well."""
        own, more = super().needs(known, needs), needs(self.create, known)
        return msgspec.structs.replace(more, names=own.names | more.names, documents=own.documents)

    def change(self, records: Records, file: JobsFile, now: int, decide: Decide) -> Verdict:
        """A refusal is on record like a task: nobody waits for the answer."""
        job = file.jobs.get(self.job_id)
        if job is None or job.rev != self.seen:
            return Decision()
        about = {"occasion": self.occasion} | ({"due": self.due} if self.due is not None else {})
        if self.unusable is not None:
            return Decision(drafts=(self.record(FAILED, **about, error=self.unusable),))
        verdict = decide(records, self.create, now)
        if isinstance(verdict, IdTaken | UnreadableTask):
            return verdict
        if isinstance(verdict, AofError):
            return Decision(drafts=(self.record(FAILED, **about, error=f"{verdict.code}: {verdict.message}"),))
        made = verdict.replayed or self.create.task_id
        drafts = tuple(_linked(draft, job.id, now) for draft in verdict.drafts)
        return msgspec.structs.replace(
            verdict, drafts=(*drafts, self.record(DISPATCHED, **about, taskId=made)), replayed=made
        )


def _linked(draft: Draft, job_id: str, now: int) -> Draft:
    """The new task has the edge to its job from the beginning."""
    if draft.type != "task.created":
        return draft
    edge = {"kind": LINK, "targetId": job_id, "createdAt": iso(now)}
    return msgspec.structs.replace(draft, payload={"task": draft.payload["task"] | {"links": [edge]}})


def find_job(file: JobsFile, job_id: str) -> Job:
    """The job of that name; raises JobNotFound, or says why it cannot be used."""
    job = file.jobs.get(job_id)
    if job is not None:
        return job
    if job_id in file.unusable:
        raise file.unusable[job_id].error
    hint = suggestion(job_id[:80], file.jobs, "see which jobs there are")
    raise JobNotFound(f"there is no job '{job_id[:80]}'", hint, Call("job_list", {}))


def _no_lead(policy: Policy, name: str) -> NotAllowed | None:
    """The refusal of an agent that does not steer the work of others, where there is a chart."""
    chart = policy.org
    if chart is None or rights.is_person(chart, name, policy.maintainers):
        return None
    kind = rights.kind_of(chart, name, policy.maintainers)
    if kind in ("lead", "maintainer"):
        return None
    return NotAllowed(
        f"{name[:80]} is a {kind} and may not steer jobs", "leave it to a lead or a maintainer", agent=name[:80]
    )
