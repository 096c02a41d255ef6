"""Errors about runs: leases, results, workers, and the questions of running agents."""

from __future__ import annotations

from aof.core.errors.base import Conflict, Invalid, NotFound, Refused, Unavailable


class AlreadyClaimed(Conflict):
    """Another agent holds the task."""

    code = "already_claimed"


class Reserved(Refused):
    """The task is reserved for another agent."""

    code = "reserved"


class StaleLease(Conflict):
    """The run that the caller acts for has been replaced or has ended."""

    code = "stale_lease"


class NotLeaseHolder(Conflict):
    """The caller is not the agent that holds the lease."""

    code = "not_lease_holder"


class RunRequired(Conflict):
    """The agent has had several runs of this task and must say which one it acts for."""

    code = "run_required"


class UnreadableResult(Invalid):
    """The file with a run's result cannot be understood; it was left as it is."""

    code = "invalid_run_result"


class RunnerFailed(Unavailable):
    """A worker could not be started."""

    code = "runner_failed"


class AlreadyAnswered(Conflict):
    """The question has already been answered."""

    code = "already_answered"


class NoQuestion(NotFound):
    """No agent has asked such a question about the task."""

    code = "no_question"


class NotClaimed(Refused):
    """The caller has not claimed the task that it calls complete."""

    code = "not_claimed"


class QuestionOpen(Refused):
    """The work cannot be complete while a question that its agent has asked is open."""

    code = "question_open"


class QuestionRequired(Refused):
    """Several questions are open, and the call does not say which one it answers."""

    code = "question_required"


class SelfAnswer(Refused):
    """An agent cannot answer its own question."""

    code = "self_answer"
