"""Errors about jobs."""

from __future__ import annotations

from aof.core.errors.base import Conflict, Invalid, NotFound


class JobNotFound(NotFound):
    """There is no such job."""

    code = "job_not_found"


class JobExists(Conflict):
    """There is a job of that name already."""

    code = "job_exists"


class UnreadableJobs(Invalid):
    """The file of the jobs cannot be used as it is."""

    code = "jobs_unreadable"
