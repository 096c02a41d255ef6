"""All services for one caller, each made when it is first asked for. Must not know which store or surface is in use."""

from __future__ import annotations

from functools import cached_property

from aof.app.commands import authentication, dispatcher
from aof.app.documents import worklog
from aof.app.documents.charter import service as charter
from aof.app.documents.conflicts import service as conflicts
from aof.app.documents.mailbox import service as mail
from aof.app.handoffs import audit, shared_work
from aof.app.handoffs import service as handoffs
from aof.app.jobs import service as jobs
from aof.app.maintenance import service as maintenance
from aof.app.messages import service as messages
from aof.app.org import service as org
from aof.app.portable import service as portable
from aof.app.queries import ready_queue
from aof.app.queries import service as queries
from aof.app.runs import service as runs
from aof.app.scheduler import service as scheduler
from aof.app.tasks import service as tasks
from aof.app.workflows import service as workflows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.environment import Environment
    from aof.app.commands.principal import Principal


class Services:
    """One service per subject, over one environment and for one principal."""

    def __init__(self, environment: Environment, principal: Principal) -> None:
        self.environment = environment
        self.principal = principal

    def expecting(self, rev: int | None) -> Services:
        """The same services for a caller that changes a task only if that still has this revision."""
        return self if rev is None else Services(self.environment, self.principal.but(expect_rev=rev))

    @cached_property
    def authentication(self) -> authentication.Authentication:
        """Who the caller is, and for whom it may speak."""
        return authentication.Authentication(self.environment, self.principal)

    @cached_property
    def dispatcher(self) -> dispatcher.Dispatcher:
        """The way of every command."""
        return dispatcher.Dispatcher(self.environment, self.principal, self.authentication)

    @cached_property
    def queries(self) -> queries.QueryService:
        """Lists, one task, the history, the graph."""
        return queries.QueryService(self.environment)

    @cached_property
    def queue(self) -> ready_queue.ReadyQueue:
        """What could be claimed right now."""
        return ready_queue.ReadyQueue(self.environment)

    @cached_property
    def tasks(self) -> tasks.TaskService:
        """Creating, changing and steering tasks."""
        return tasks.TaskService(self.environment, self.dispatcher)

    @cached_property
    def runs(self) -> runs.RunService:
        """Claims, reports and ends of runs."""
        return runs.RunService(self.environment, self.principal, self.authentication, self.dispatcher, self.queue)

    @cached_property
    def org(self) -> org.OrgService:
        """The org chart."""
        return org.OrgService(self.environment, self.queries)

    @cached_property
    def workflows(self) -> workflows.WorkflowService:
        """Workflows."""
        return workflows.WorkflowService(self.environment, self.principal, self.dispatcher)

    @cached_property
    def messages(self) -> messages.MessageService:
        """Protocol messages and sessions."""
        return messages.MessageService(self.environment, self.principal, self.authentication, self.dispatcher)

    @cached_property
    def handoffs(self) -> handoffs.HandoffService:
        """Handoffs."""
        return handoffs.HandoffService(self.environment, self.dispatcher)

    @cached_property
    def audit(self) -> audit.AuditService:
        """The audit records of handoffs."""
        return audit.AuditService(self.environment)

    @cached_property
    def shared_work(self) -> shared_work.SharedWorkService:
        """What the agents of a workflow share."""
        return shared_work.SharedWorkService(self.environment, self.dispatcher)

    @cached_property
    def charter(self) -> charter.CharterService:
        """The session charter."""
        return charter.CharterService(self.environment, self.dispatcher)

    @cached_property
    def conflicts(self) -> conflicts.ConflictService:
        """Proposals and disagreements."""
        return conflicts.ConflictService(self.environment, self.dispatcher)

    @cached_property
    def mail(self) -> mail.MailService:
        """Mail between agents."""
        return mail.MailService(self.environment, self.principal, self.dispatcher)

    @cached_property
    def worklog(self) -> worklog.WorklogService:
        """The team's WORKLOG."""
        return worklog.WorklogService(self.environment, self.dispatcher)

    @cached_property
    def jobs(self) -> jobs.JobService:
        """Schedules and batches."""
        return jobs.JobService(self.environment, self.dispatcher)

    @cached_property
    def scheduler(self) -> scheduler.SchedulerService:
        """One tick, and recovery."""
        return scheduler.SchedulerService(self.environment, self.dispatcher)

    @cached_property
    def portable(self) -> portable.PortableService:
        """The shapes of the agent task contract."""
        return portable.PortableService(self.environment)

    @cached_property
    def maintenance(self) -> maintenance.MaintenanceService:
        """Sync and doctor."""
        return maintenance.MaintenanceService(self.environment)
