"""The fabric: everything that can be asked of one data directory, as methods of one object.

The methods of the operations are in `facade`, which is generated; each calls a service, made when it is first asked
for. Must not know which store or surface is in use.
"""

from __future__ import annotations

from functools import cached_property
from types import TracebackType

from aof.app.commands import dispatcher, identity
from aof.app.commands.context import Environment, Principal
from aof.app.documents import worklog
from aof.app.documents.charter import service as charter
from aof.app.documents.conflicts import service as conflicts
from aof.app.documents.mailbox import service as mail
from aof.app.facade import Facade
from aof.app.handoffs import audit, shared_work
from aof.app.handoffs import service as handoffs
from aof.app.interchange import service as interchange
from aof.app.jobs import service as jobs
from aof.app.maintenance import service as maintenance
from aof.app.messages import service as messages
from aof.app.operations.arguments import checked
from aof.app.org import service as org
from aof.app.portable import service as portable
from aof.app.queries import ready_queue
from aof.app.queries import service as queries
from aof.app.runs import claimed_run, questions
from aof.app.runs import service as runs
from aof.app.scheduler import service as scheduler
from aof.app.supervision import caller, crew, inbox, moves, neighbourhood
from aof.app.supervision import history as chronicle
from aof.app.tasks import bulk, undo
from aof.app.tasks import service as tasks
from aof.app.workflows import service as workflows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from aof.app.runs.claimed_run import ClaimedRun, Grant
    from aof.core.model.org_chart import OrgChart
    from aof.core.model.policy import Policy
    from aof.ports.clock import Clock
    from aof.ports.store import Store


class Services:
    """One service per subject, over one environment and for one principal."""

    def __init__(self, environment: Environment, principal: Principal) -> None:
        self.environment = environment
        self.principal = principal

    def expecting(self, rev: int | None) -> Services:
        """The same services for a caller that changes a task only if that still has this revision."""
        return self if rev is None else Services(self.environment, self.principal.but(expect_rev=rev))

    @cached_property
    def authentication(self) -> identity.Authentication:
        """Who the caller is, and for whom it may speak."""
        return identity.Authentication(self.environment, self.principal)

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
        return ready_queue.ReadyQueue(self.environment, self.principal)

    @cached_property
    def tasks(self) -> tasks.TaskService:
        """Creating, changing and steering tasks."""
        return tasks.TaskService(self.environment, self.dispatcher)

    @cached_property
    def bulk(self) -> bulk.BulkService:
        """One change of many tasks."""
        return bulk.BulkService(self.environment, self.dispatcher)

    @cached_property
    def undo(self) -> undo.UndoService:
        """Reversing changes."""
        return undo.UndoService(self.environment, self.dispatcher)

    @cached_property
    def runs(self) -> runs.RunService:
        """Claims, reports and ends of runs."""
        return runs.RunService(self.environment, self.principal, self.authentication, self.dispatcher)

    @cached_property
    def questions(self) -> questions.QuestionService:
        """Questions of running agents."""
        return questions.QuestionService(self.environment, self.dispatcher)

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
    def interchange(self) -> interchange.InterchangeService:
        """Tasks from and to other tools."""
        return interchange.InterchangeService(self.environment, self.dispatcher)

    @cached_property
    def scheduler(self) -> scheduler.SchedulerService:
        """One tick, and recovery."""
        return scheduler.SchedulerService(self.environment, self.dispatcher)

    @cached_property
    def inbox(self) -> inbox.InboxService:
        """What needs a person."""
        return inbox.InboxService(self.environment)

    @cached_property
    def caller(self) -> caller.CallerService:
        """Who calls."""
        return caller.CallerService(self.environment, self.principal, self.authentication)

    @cached_property
    def crew(self) -> crew.CrewService:
        """Who is at work."""
        return crew.CrewService(self.environment)

    @cached_property
    def moves(self) -> moves.MoveService:
        """What may be done with a task now."""
        return moves.MoveService(self.environment, self.dispatcher)

    @cached_property
    def chronicle(self) -> chronicle.ChronicleService:
        """Work over time."""
        return chronicle.ChronicleService(self.environment)

    @cached_property
    def neighbourhood(self) -> neighbourhood.NeighbourhoodService:
        """The tasks around one."""
        return neighbourhood.NeighbourhoodService(self.environment)

    @cached_property
    def portable(self) -> portable.PortableService:
        """The shapes of the agent task contract."""
        return self.environment.portable

    @cached_property
    def maintenance(self) -> maintenance.MaintenanceService:
        """Sync and doctor."""
        return maintenance.MaintenanceService(self.environment, self.authentication)


@checked("fabric")
class Fabric(Facade):
    """Everything that can be asked of one data directory. `actor` is who calls unless a call says otherwise.

    `store` is where everything is kept, `parts` are the other parts of an `Environment`. `services` is for the programs
    that AOF itself consists of.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: Policy,
        actor: str,
        run: str | None = None,
        *,
        secret: str | None = None,
        **parts: Any,
    ) -> None:
        environment = Environment(store, clock, policy, **parts)
        self.store = store
        self.services = Services(environment, Principal(actor, run, secret=secret))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the data directory."""
        self.store.close()

    def now(self) -> int:
        """What time it is for this fabric, in UTC milliseconds."""
        return self.services.environment.clock.now()

    @property
    def org(self) -> OrgChart:
        """The chart in force, an empty one where there is none. Raises UnusableOrgChart."""
        return self.services.environment.chart.whole()

    @property
    def actor(self) -> str:
        """The caller's name, unless a call names another."""
        return self.services.principal.actor

    @property
    def needs_secret(self) -> bool:
        """Whether writes to a run count only with its secret."""
        return self.services.environment.policy.require_secret

    @property
    def binds_callers(self) -> bool:
        """Whether a session, a token or a run is one actor: where there is an org chart, or identity is strict."""
        return self.services.authentication.binds_callers

    def speaks_for_others(self, name: str) -> bool:
        """Whether somebody may act for others at all; for whom, and on which task, is decided with each command."""
        return self.services.authentication.speaks_for_others(name)

    def as_actor(self, actor: str, run: str | None = None) -> Self:
        """The same data, asked by somebody else; closing either closes both. What was proven stays so."""
        return self.on_behalf_of(self.services.principal.but(actor=actor, run=run))

    def as_run(self, secret: str) -> Self:
        """The same data, asked for the run whose secret this is: everything is done as that run's agent."""
        return self.on_behalf_of(self.services.principal.as_run(secret))

    def _held(self, grant: Grant) -> ClaimedRun:
        return claimed_run.ClaimedRun.of(self, grant)

    def on_behalf_of(self, principal: Principal) -> Self:
        """The same data, asked by this caller."""
        view = object.__new__(type(self))
        view.store = self.store
        view.services = Services(self.services.environment, principal)
        return view
