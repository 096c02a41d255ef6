"""The data that everything is made of: IDs, times, statuses and settings.

Must not know what time it is, nor draw anything random.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from aof.kernel.kinds import Status
    from aof.org.model import Gate, OrgChart


TRANSITIONS: Final[dict[str, tuple[Status, ...]]] = {
    "backlog": ("ready", "blocked", "cancelled"),
    "ready": ("in-progress", "backlog", "blocked", "deadletter", "cancelled"),
    "in-progress": ("review", "ready", "blocked", "deadletter", "cancelled"),
    "review": ("done", "in-progress", "ready", "blocked", "cancelled"),
    "blocked": ("ready", "backlog", "deadletter", "cancelled"),
    "done": (),
    "cancelled": (),
    "deadletter": ("ready",),
}
STATUSES: Final[tuple[str, ...]] = tuple(TRANSITIONS)
PRIORITIES: Final[tuple[str, ...]] = ("critical", "high", "normal", "low")
BLOCKED_KINDS: Final[tuple[str, ...]] = ("blocked", "waiting_input", "waiting_permission", "waiting_resource", "paused")
VISIBILITIES: Final[tuple[str, ...]] = ("foreground", "background", "internal", "hidden")
CAUSES: Final[tuple[str, ...]] = ("failed", "timed_out", "lost")
FINISHED: Final = frozenset({"done", "cancelled", "deadletter"})
WAITS_FOR_DEPENDENCIES: Final = "waitForDependencies"  # in the metadata of a task put into the backlog only to wait
FAILED: Final = frozenset({"cancelled", "deadletter"})


def status_allows(current: str, target: str) -> bool:
    """Whether the table has the edge; staying where one is counts as no edge."""
    return target in TRANSITIONS[current]


def priority_rank(priority: str) -> int:
    """0 for the most urgent: the first part of the scheduling order."""
    return PRIORITIES.index(priority)


OURSELVES = "aof"  # who acts where AOF does something by itself
NUMBER_DIGITS = 9  # at most
_IDS_LONGEST = len("TASK-2026-02-21-") + NUMBER_DIGITS
_PADDED = 3  # a number with more digits does not begin with zero
_IDS_PART = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
_PART_LENGTH = 40
_NAME = _IDS_PART | frozenset("abcdefghijklmnopqrstuvwxyz._@:+")
_NAME_LENGTH = 128
TAG_DIGITS = 8
_HEX = frozenset("0123456789abcdef")
_PARTS_UNTAGGED, _PARTS_TAGGED = 6, 7  # RUN, a day of three parts, number, attempt, tag


def is_day(text: str) -> bool:
    """Whether the text has the form of a day, such as 2026-02-21."""
    return text[4:5] == text[7:8] == "-" and text.isascii() and text[:4].isdigit() and _two(text[5:7], text[8:])


def _two(month: str, day: str) -> bool:
    return len(month) == len(day) == 2 and month.isdigit() and day.isdigit()  # noqa: PLR2004 - a form, no limit


def is_task_id(text: str) -> bool:
    """Whether the text is a whole task ID and nothing else, not even a trailing newline."""
    return len(text) <= _IDS_LONGEST and _has_form(text)


@lru_cache(maxsize=1024)  # a commit asks this of the same ID several times
def _has_form(text: str) -> bool:
    number = text[16:]
    return (
        text[:5] == "TASK-"
        and text[15:16] == "-"
        and is_day(text[5:15])
        and number.isascii()
        and number.isdigit()
        and (len(number) == _PADDED or (_PADDED < len(number) <= NUMBER_DIGITS and number[0] != "0"))
    )


def is_part(text: str) -> bool:
    """Whether the text could be a part of a task ID at all."""
    return 0 < len(text) <= _PART_LENGTH and _IDS_PART.issuperset(text)


def is_agent_name(text: str) -> bool:
    """Whether the text can name an agent, an actor, a role, a team or a resource."""
    return 0 < len(text) <= _NAME_LENGTH and _NAME.issuperset(text) and text[0].isalnum()


def task_id(day: str, number: int) -> str:
    """Build the ID of a day's nth task."""
    return f"TASK-{day}-{number:03d}"


@lru_cache(maxsize=1024)  # a commit asks this of the same ID several times
def split_task_id(text: str) -> tuple[str, int]:
    """The day and the number of a valid task ID."""
    return text[5:15], int(text[16:])


def run_id(task: str, attempt: int, tag: str) -> str:
    """The ID of a task's nth run.

    The tag is eight random hex digits, so that the same attempt in another branch, clone or restored backup has
    another ID. Without a tag it is the form that earlier versions wrote.
    """
    return f"RUN-{task[5:]}-{attempt}-{tag}" if tag else f"RUN-{task[5:]}-{attempt}"


def task_of_run(run: str) -> str | None:
    """The task that a run belongs to, or None when the text is not a run ID; also for IDs without a tag."""
    parts = run.split("-")
    if parts[0] != "RUN" or not _PARTS_UNTAGGED <= len(parts) <= _PARTS_TAGGED:
        return None
    owner, attempt, tag = f"TASK-{'-'.join(parts[1:5])}", parts[5], "".join(parts[6:])
    if len(parts) == _PARTS_TAGGED and not (len(tag) == TAG_DIGITS and _HEX.issuperset(tag)):
        return None
    return owner if is_task_id(owner) and attempt.isascii() and attempt.isdigit() else None


def is_tagged(run: str) -> bool:
    """Whether a run's ID has a random part; those of earlier versions have none."""
    return run.count("-") == _PARTS_TAGGED - 1


def run_place(task: str, hop: str | None) -> str:
    """What the records of a run go by: the task, or one of its hops."""
    return task if hop is None else f"{task}/hops/{hop}"


def attempt_of(run: str) -> int:
    """The number of a run among those of its task."""
    return int(run.split("-")[5])


def matching_ids(part: str, candidates: Iterable[str]) -> list[str]:
    """Every ID that the part stands for: it begins at the start or after a dash.

    A full ID means only itself, also where a longer number starts with the same digits.
    """
    found: list[str] = []
    dashed = f"-{part}"
    for candidate in candidates:
        if candidate == part:
            return [candidate]
        if candidate.startswith(part) or dashed in candidate:
            found.append(candidate)
    exact_end = [candidate for candidate in found if candidate.endswith(dashed)]
    return exact_end if len(exact_end) == 1 else found


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def iso(millis: int) -> str:
    """Write a moment the one way that AOF writes it, so that text order is time order."""
    seconds, rest = divmod(millis, 1000)
    return f"{_to_the_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:-6]


@lru_cache(maxsize=256)
def millis(text: str) -> int:
    """Read an ISO-8601 moment; one without an offset is taken as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND


def day(millis: int) -> str:
    """The UTC day of a moment, as it stands in IDs and in the names of log files."""
    return iso(millis)[:10]


def end_of(text: str) -> str:
    """The moment at which a due date is over: of a day its last one, of a moment itself. Raises ValueError."""
    moment = iso(millis(text))
    return f"{moment[:10]}T23:59:59.999Z" if len(text) == len("YYYY-MM-DD") else moment


def resolve_time(text: str, now: int) -> str:
    """A day, or a moment as AOF writes it, from how people say it: `today`, `+3d`, `2026-03-01`. Raises ValueError."""
    said = text.strip()
    if said.lower() in _DAYS:
        return day(now + _DAYS[said.lower()] * _UNITS["d"])
    if said[:1] in ("+", "-"):
        length = duration_ms(said[1:])
        if length is None:
            raise ValueError(said)
        return iso(now + length if said[0] == "+" else now - length)
    moment = iso(millis(said))
    return moment[:10] if len(said) == len("YYYY-MM-DD") else moment


MOMENTS = "2026-03-01, 2026-03-01T12:00Z, today, tomorrow, +3d or -12h"
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIMES_PART = r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)"
_TIMES_LONGEST = 366 * _UNITS["d"]
EXAMPLES = "90s, 30m, 2h or 1h30m"


def duration_ms(text: object) -> int | None:
    """So many milliseconds, at least one and at most a year; None when the text is no such duration."""
    if not isinstance(text, str) or re.fullmatch(rf"(?:{_TIMES_PART})+", text, re.ASCII) is None:
        return None
    parts = re.findall(_TIMES_PART, text, re.ASCII)
    if len({unit for _, unit in parts}) != len(parts):
        return None
    length = round(sum(float(count) * _UNITS[unit] for count, unit in parts))
    return length if 1 <= length <= _TIMES_LONGEST else None


_NONE: Mapping[str, int] = MappingProxyType({})


class SchedulingPolicy:
    """How many runs there may be at once, and how long a task may stay in a status.

    With `promote`, all of the backlog becomes ready once it waits for nothing, not only what was put there to wait.
    `handoff_ms` is how long a handoff without a due date may stay unanswered by an agent that AOF does not start, and
    how long a delegation without a timeout waits for its result.
    `archive_ms` is how long a task that is done or cancelled stays before it is archived; None keeps it for good.
    """

    def __init__(
        self,
        *,
        max_concurrent: int | None = None,
        promote: bool = False,
        patience_ms: Mapping[str, int] = _NONE,
        handoff_ms: int = 3_600_000,
        archive_ms: int | None = None,
    ) -> None:
        self.max_concurrent = max_concurrent
        self.promote = promote
        self.patience_ms = patience_ms
        self.handoff_ms = handoff_ms
        self.archive_ms = archive_ms


class WorklogPolicy:
    """Whether claims, completions and handoffs write lines by themselves, and the length that compaction begins at."""

    def __init__(self, *, automatic: bool = True, longest: int = 500) -> None:
        self.automatic = automatic
        self.longest = longest


_USUAL = SchedulingPolicy()
_KEPT = WorklogPolicy()


class Policy:
    """What is in force.

    `has_maintainers` says that there are any, whether or not this caller may be one. `only_said` are maintainers' names
    that this caller has only said: what they made is not its own. `self_review` lets whoever ran the
    work approve it. `review_required` lists the tags whose tasks only a maintainer takes out of review; True stands for
    every task.
    """

    def __init__(
        self,
        *,
        lease_ttl_ms: int = 300_000,
        kept_ttl_ms: int = 3_600_000,
        max_attempts: int = 3,
        retry_base_ms: int = 60_000,
        retry_factor: int = 3,
        retry_cap_ms: int = 900_000,
        resource_slots: Mapping[str, int] = _NONE,
        scheduling: SchedulingPolicy = _USUAL,
        maintainers: tuple[str, ...] = (),
        require_secret: bool = False,
        strict: bool = False,
        refuse_unlisted: bool = False,
        self_review: bool = False,
        review_required: bool | tuple[str, ...] = False,
        org: OrgChart | None = None,
        project: str = "unknown",
        messages_per_send: int = 1000,
        gates: tuple[Gate, ...] = (),
        worklog: WorklogPolicy = _KEPT,
        has_maintainers: bool = False,
        only_said: tuple[str, ...] = (),
    ) -> None:
        self.lease_ttl_ms = lease_ttl_ms
        self.kept_ttl_ms = kept_ttl_ms
        self.max_attempts = max_attempts
        self.retry_base_ms = retry_base_ms
        self.retry_factor = retry_factor
        self.retry_cap_ms = retry_cap_ms
        self.resource_slots = resource_slots
        self.scheduling = scheduling
        self.maintainers = maintainers
        self.require_secret = require_secret
        self.strict = strict
        self.refuse_unlisted = refuse_unlisted
        self.self_review = self_review
        self.review_required = review_required
        self.org = org
        self.project = project
        self.messages_per_send = messages_per_send
        self.gates = gates
        self.worklog = worklog
        self.has_maintainers = has_maintainers or bool(maintainers)
        self.only_said = only_said

    @property
    def binds(self) -> bool:
        """Whether callers are bound and gates are protected: with an org chart, or with strict identity."""
        return self.strict or self.org is not None

    def without(self, names: Collection[str | None]) -> Policy:
        """The policy for a caller that has only said one of these names: a maintainer's name gives it no rights."""
        said = tuple(name for name in self.maintainers if name in names)
        return self.but(maintainers=tuple(name for name in self.maintainers if name not in said), only_said=said)

    def but(self, **changes: Any) -> Policy:
        """The same policy with something changed."""
        return Policy(**(vars(self) | changes))
