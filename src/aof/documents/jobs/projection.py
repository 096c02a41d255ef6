"""jobs.json follows the log: every job by its name, as JSON that people read and may change.

The file says how far it has followed, so nothing is applied twice and a person's changes stay. A file that cannot be
read stays as it is, and is an error for whoever needs it. So does a single job that makes no sense, and all others go
on. Must not know who may change a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from aof._support import nesting
from aof.core.errors.jobs import UnreadableJobs
from aof.core.jobs.job import REMOVED, Job, evolve_jobs
from aof.core.jobs.timing import problem
from aof.core.model.events import Event
from aof.core.model.policy import Policy
from aof.documents.projection import Extension, Facts, Files, PastEvents, Rewritten

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
        """The same after one more event. Of a job that cannot be used, only its removal can be carried out."""
        name = event.payload.get("job")
        gone = event.type == REMOVED
        unusable = {other: one for other, one in self.unusable.items() if not (gone and other == name)}
        return JobsFile(rev=event.seq, jobs=evolve_jobs(self.jobs, event), unusable=unusable)


class _Outline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file, with the text of each job."""

    rev: int = 0
    jobs: dict[str, msgspec.Raw] = {}


class JobsDocument:
    """Keeps the contract of `documents.projection.Projection`."""

    name, path, types = NAME, PATH, TYPES

    def __init__(self, _policy: Policy) -> None:
        """No setting changes how jobs are written."""

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:  # noqa: ARG002 - the contract
        """Nothing is ever added at the end only."""
        return None

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:  # noqa: ARG002 - the contract
        """What the file does not know of yet is applied to the jobs as a person has left them."""
        text = files.text(PATH)
        if not text and not fresh and past is None:
            return Rewritten({})
        known = parsed(text)
        missing: list[Event] = []
        for event in past.events if past is not None else ():
            if event.seq <= known.rev:
                break
            missing.append(event)
        file = known
        for event in (*reversed(missing), *fresh):
            if event.seq > file.rev:
                file = file.after(event)
        return Rewritten({PATH: rendered(file)} if file.rev != known.rev else {})


def rendered(file: JobsFile) -> str:
    """The text of the file."""
    jobs = file.jobs | {name: one.text for name, one in file.unusable.items()}
    data = msgspec.json.encode({"rev": file.rev, "jobs": dict(sorted(jobs.items()))})
    return msgspec.json.format(data, indent=2).decode() + "\n"


def parsed(text: str) -> JobsFile:
    """The jobs in the file, and those that make no sense; raises UnreadableJobs where they cannot be told apart."""
    if not text.strip():
        return JobsFile()
    try:
        found = nesting.decode(text, _Outline)
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
        job = nesting.decode(bytes(raw), Job)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        return _unreadable(f"job '{name[:80]}': {error}", hint)
    if name != job.id:
        return _unreadable(f"the job '{name[:80]}' calls itself '{job.id[:80]}'", hint)
    wrong = problem(job)
    return job if wrong is None else _unreadable(f"job '{name[:80]}': {wrong.message}", hint)


def _unreadable(why: str, hint: str) -> UnreadableJobs:
    return UnreadableJobs(f"{PATH} cannot be used: {why}", hint, path=PATH)
