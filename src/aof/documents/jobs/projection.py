"""jobs.json follows the log: every job by its name, as JSON that people read and may change.

The file says how far it has followed, so nothing is applied twice and a person's changes stay. A file that cannot be
read stays as it is, and is an error for whoever needs it. Must not know who may change a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.errors.jobs import UnreadableJobs
from aof.core.jobs.job import Job, evolve_jobs
from aof.core.jobs.timing import problem
from aof.core.model.events import Event
from aof.core.model.policy import Policy
from aof.documents.projection import Extension, Facts, Files, PastEvents, Rewritten

NAME: Final = "JOBS"
PATH: Final = "jobs.json"
TYPES: Final = ("document.job.",)


class JobsFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """All jobs by name. `rev` is the log's number of the last event that the file knows of."""

    rev: int = 0
    jobs: dict[str, Job] = {}


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
        jobs, rev = known.jobs, known.rev
        for event in (*reversed(missing), *fresh):
            if event.seq > rev:
                jobs, rev = evolve_jobs(jobs, event), event.seq
        return Rewritten({PATH: rendered(JobsFile(rev=rev, jobs=jobs))} if rev != known.rev else {})


def rendered(file: JobsFile) -> str:
    """The text of the file."""
    data = msgspec.json.encode({"rev": file.rev, "jobs": dict(sorted(file.jobs.items()))})
    return msgspec.json.format(data, indent=2).decode() + "\n"


def parsed(text: str) -> JobsFile:
    """The jobs in the file; raises UnreadableJobs where it cannot be read, or a job in it is not possible."""
    if not text.strip():
        return JobsFile()
    try:
        found = msgspec.json.decode(text, type=prepare_type(JobsFile))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise _unreadable(str(error)) from None
    for name, job in found.jobs.items():
        if name != job.id:
            raise _unreadable(f"the job '{name[:80]}' calls itself '{job.id[:80]}'")
        wrong = problem(job)
        if wrong is not None:
            raise _unreadable(f"job '{name[:80]}': {wrong.message}")
    return found


def _unreadable(why: str) -> UnreadableJobs:
    return UnreadableJobs(
        f"{PATH} cannot be used: {why}", "correct it, or move it away: then the log writes it anew", path=PATH
    )
