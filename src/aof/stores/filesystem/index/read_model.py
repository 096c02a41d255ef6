"""The questions about many tasks that the index answers as they are asked. Must not know the files."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.core.handoffs.audit import AuditRecord
    from aof.core.model.task import Task
    from aof.core.org.health.agent_health import AgentHealth
    from aof.core.runs.attention import AttentionPage, AttentionQuery
    from aof.core.runs.chronicle import FlowFacts, SpanPage, SpanQuery
    from aof.ports.audit import AuditQuery
    from aof.ports.lists import Query
    from aof.ports.store import Page
    from aof.stores.filesystem.index.index import Index


class IndexReadModel:
    """A part of the store."""

    @cached_property
    def index(self) -> Index:
        """The index."""
        raise NotImplementedError

    def find(self, query: Query) -> Page:
        """Answer from the index."""
        return self.index.pages((query,))[0]

    def pages(self, queries: Iterable[Query]) -> tuple[Page, ...]:
        """The same for several queries at once."""
        return self.index.pages(tuple(queries))

    def ids(self, part: str) -> tuple[str, ...]:
        """The IDs that a short form could stand for."""
        return self.index.ids(part)

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """The IDs that tasks had elsewhere."""
        return self.index.aliases()

    def resources_in_use(self) -> dict[str, int]:
        """How many running tasks occupy each resource."""
        return self.index.resources_in_use()

    def attention(self, query: AttentionQuery) -> AttentionPage:
        """What needs a person, most urgent first."""
        return self.index.attention(query)

    def last_seen(self) -> dict[str, str]:
        """When each name was last seen in the log."""
        return self.index.last_seen()

    def run_spans(self, query: SpanQuery) -> SpanPage:
        """A page of runs, the last one first."""
        return self.index.run_spans(query)

    def flow_facts(self, since: str) -> FlowFacts:
        """What moved, was finished and was run."""
        return self.index.flow_facts(since)

    def audited(self, query: AuditQuery) -> tuple[AuditRecord, ...]:
        """The audit records that match."""
        return self.index.audited(query)

    def health(self) -> dict[str, AgentHealth]:
        """What the log says last of each agent's health."""
        return self.index.health()

    def records(self, task_ids: Collection[str]) -> tuple[Task, ...]:
        """These tasks, without their bodies."""
        return self.index.records(task_ids)

    def child_counts(self, task_ids: Collection[str]) -> dict[str, dict[str, int]]:
        """How many tasks below each of these are in which status."""
        return self.index.child_counts(task_ids)

    def locking(self) -> tuple[Task, ...]:
        """The running tasks that hold locks on files."""
        return self.index.locking()
