"""Commands about jobs: add, pause, resume and remove one, and let it create a task. Must not know any surface.

A task that a job creates, the edge to its job and what the job remembers of it are one commit.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.documents import speakers
from aof.core.errors.base import AofError, Call, InvalidInput, PayloadTooLarge
from aof.core.errors.jobs import JobExists, JobNotFound
from aof.core.errors.org import NotAllowed
from aof.core.errors.tasks import IdTaken, UnreadableTask
from aof.core.jobs import job as j
from aof.core.jobs import timing
from aof.core.model.commands import Create, Decide, NeedsOf, OnDocument
from aof.core.model.events import Draft
from aof.core.model.policy import Policy
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.times import iso
from aof.core.org import rights
from aof.core.validation.findings import suggestion
from aof.documents.jobs.projection import NAME, PATH, JobsFile, parsed, rendered
from aof.documents.projection import lock_of

_LARGEST: Final = 2_000_000


class OnJobs(OnDocument, frozen=True, kw_only=True):
    """A command about one job."""

    job_id: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the rule's signature
        """The lock of the jobs, and their file."""
        return Needs(names=frozenset({lock_of(NAME)}), documents=frozenset({PATH}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Who may do it comes first. What AOF does by itself needs no right."""
        if self.outside:
            refused = speakers.refused(records.policy, self) or _no_lead(records.policy, self.acting)
            if refused is not None:
                return refused
        try:
            return self.settle(records, parsed(records.documents[PATH]), now, decide)
        except AofError as error:
            return error

    def settle(self, records: Records, file: JobsFile, now: int, decide: Decide) -> Verdict:
        """What it does to the jobs as they are."""
        raise NotImplementedError

    def said(self, kind: str, **more: Any) -> Draft:
        """What is recorded of it."""
        return Draft(type=kind, task_id="", payload={"document": NAME, "job": self.job_id, **more})


class AddJob(OnJobs, frozen=True, kw_only=True):
    """Accept a new job."""

    job: j.Job

    def settle(self, records: Records, file: JobsFile, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the rule's signature
        """A name stands for one job."""
        new = msgspec.structs.replace(self.job, created_by=self.acting, created_at=iso(now), handled=iso(now))
        wrong = timing.problem(new)
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
        size = len(rendered(msgspec.structs.replace(file, jobs=file.jobs | {new.id: new})))
        if len(file.jobs) + len(file.unusable) >= timing.MOST_JOBS or size > _LARGEST:
            return PayloadTooLarge(
                f"there are {len(file.jobs)} jobs, and no room for more", "remove jobs that have ended"
            )
        return Decision(drafts=(self.said(j.ADDED, record=msgspec.to_builtins(new)),))


class ChangeJob(OnJobs, frozen=True, kw_only=True):
    """Pause a job, resume or remove it; what it has created stays."""

    event: str

    def settle(self, records: Records, file: JobsFile, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the rule's signature
        """The same again changes nothing."""
        if self.event == j.REMOVED and self.job_id in file.unusable:
            return Decision(drafts=(self.said(self.event),))
        job = found(file, self.job_id)
        if self.event != j.REMOVED and job.paused == (self.event == j.PAUSED):
            return Decision()
        return Decision(drafts=(self.said(self.event),))


class DispatchJob(OnJobs, frozen=True, kw_only=True):
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

    def settle(self, records: Records, file: JobsFile, now: int, decide: Decide) -> Verdict:
        """A refusal is on record like a task: nobody waits for the answer."""
        job = file.jobs.get(self.job_id)
        if job is None or job.rev != self.seen:
            return Decision()
        about = {"occasion": self.occasion} | ({"due": self.due} if self.due is not None else {})
        if self.unusable is not None:
            return Decision(drafts=(self.said(j.FAILED, **about, error=self.unusable),))
        verdict = decide(records, self.create, now)
        if isinstance(verdict, IdTaken | UnreadableTask):
            return verdict
        if isinstance(verdict, AofError):
            return Decision(drafts=(self.said(j.FAILED, **about, error=f"{verdict.code}: {verdict.message}"),))
        made = verdict.replayed or self.create.task_id
        drafts = tuple(_linked(draft, job.id, now) for draft in verdict.drafts)
        return msgspec.structs.replace(
            verdict, drafts=(*drafts, self.said(j.DISPATCHED, **about, taskId=made)), replayed=made
        )


def _linked(draft: Draft, job_id: str, now: int) -> Draft:
    """The new task has the edge to its job from the beginning."""
    if draft.type != "task.created":
        return draft
    edge = {"kind": j.LINK, "targetId": job_id, "createdAt": iso(now)}
    return msgspec.structs.replace(draft, payload={"task": draft.payload["task"] | {"links": [edge]}})


def found(file: JobsFile, job_id: str) -> j.Job:
    """The job of that name; raises JobNotFound, or says why it cannot be used."""
    job = file.jobs.get(job_id)
    if job is not None:
        return job
    if job_id in file.unusable:
        raise file.unusable[job_id].error
    hint = suggestion(job_id[:80], file.jobs, "see which jobs there are")
    raise JobNotFound(f"there is no job '{job_id[:80]}'", hint, Call("job_list", {}))


def _no_lead(policy: Policy, name: str) -> NotAllowed | None:
    """With a chart, jobs are for those who steer the work of others."""
    chart = policy.org
    if chart is None or rights.is_person(chart, name, policy.maintainers):
        return None
    kind = rights.kind_of(chart, name, policy.maintainers)
    if kind in ("lead", "maintainer"):
        return None
    return NotAllowed(
        f"{name[:80]} is a {kind} and may not steer jobs", "leave it to a lead or a maintainer", agent=name[:80]
    )
