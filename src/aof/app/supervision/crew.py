"""The agents as a supervisor sees them: last signs of life, what each holds under which lease, load and capacity.

Must not know any surface, nor decide whether an agent can be reached.
"""

from __future__ import annotations

from collections import Counter

from msgspec import UNSET

from aof.app.queries import cursors
from aof.app.supervision import results
from aof.core.model import run, times, workflow
from aof.core.runs import lease_clock
from aof.core.tasks import normalized_status
from aof.core.validation import limits
from aof.ports.lists import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.supervision.results import AgentPage, AgentRow, HeldWork
    from aof.core.model.org_chart import Agent
    from aof.core.model.run import Heartbeat
    from aof.core.model.task import Task
    from aof.core.org.health.agent_health import AgentHealth


class CrewService:
    """Lists the agents and what each holds."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._store = environment.store

    def agents(self, *, agent: str | None = None, limit: int = 50, cursor: str | None = None) -> AgentPage:
        """The agents of the chart and all others that hold a task, by name; or only one of them."""
        if agent is not None and (problem := limits.name("agent", agent)):
            raise problem
        if problem := limits.whole("limit", limit, 0, results.MOST_ROWS):
            raise problem
        behind = cursors.found_in("agents", cursor, 1)[0] if cursor is not None else ""
        store, now = self._store, self._environment.clock.now()
        running = store.find(Query(status=("in-progress",), counted=False)).tasks
        handed = store.find(Query(open_handoffs=True, counted=False)).tasks
        held = {one.id: one for one in (*running, *handed)}.values()
        load = Counter(name for one in held for name in workflow.occupied_by(one))
        chart = self._environment.chart.readable()
        listed = chart.by_id if chart is not None else {}
        health = store.health()
        silent = {name for name, one in health.items() if not one.available}
        names = sorted({*listed, *load, *silent})
        if agent is not None:
            names = [agent] if agent in names or agent in store.last_seen() else []
        shown = [name for name in names if name > behind][: limit + 1]
        page = shown[:limit]
        work = self._work(running, frozenset(page), now)
        seen = store.last_seen()
        rows = tuple(
            _row(name, listed.get(name), health.get(name), load[name], work.get(name, []), seen.get(name))
            for name in page
        )
        more = cursors.place_in("agents", page[-1]) if page and len(shown) > limit else UNSET
        return results.AgentPage(total=len(names), agents=rows, next_cursor=more)

    def _work(
        self, running: tuple[Task, ...], names: frozenset[str], now: int
    ) -> dict[str, list[tuple[HeldWork, str]]]:
        """What each of these holds, with the last sign of life of the run."""
        leases = [(task, place, lease) for task in running for place, lease in workflow.held_leases(task)]
        mine = [(task, place, lease) for task, place, lease in leases if lease.agent in names]
        boot = self._environment.clock.boot()
        beats = {
            place: lease_clock.present(beat, now, boot)
            for place, beat in self._store.heartbeats(place for _, place, _ in mine).items()
        }
        found: dict[str, list[tuple[HeldWork, str]]] = {}
        for task, place, lease in mine:
            beat = beats.get(place)
            end = run.lease_end(lease, beat)
            asked = next((one.id for one in task.open_questions if one.run_id == lease.run_id), None)
            one = results.HeldWork(
                task_id=task.id,
                title=task.title,
                status=_status(task, beat, now),
                run_id=lease.run_id,
                since=lease.acquired_at,
                lease_ends=times.iso(end),
                left=(end - now) // 1000,
                expired=end <= now,
                hop=place.removeprefix(task.id).removeprefix("/hops/") or UNSET,
                question=asked or UNSET,
            )
            own = beat is not None and beat.run_id == lease.run_id
            alive = beat.last_heartbeat if own and beat is not None else lease.acquired_at
            found.setdefault(lease.agent, []).append((one, alive))
        return found


def _status(task: Task, beat: Heartbeat | None, now: int) -> str:
    return normalized_status.normalized_status(task, beat, now)


def _row(  # noqa: PLR0917 - what a row is made of
    name: str,
    entry: Agent | None,
    health: AgentHealth | None,
    load: int,
    work: list[tuple[HeldWork, str]],
    seen: str | None,
) -> AgentRow:
    signs = [sign for sign in (seen, *(alive for _, alive in work)) if sign is not None]
    silent = health if health is not None and not health.available else None
    return results.AgentRow(
        id=name,
        listed=entry is not None,
        active=entry.active if entry is not None else True,
        available=silent is None,
        load=load,
        holds=tuple(one for one, _ in work),
        name=(entry.name or UNSET) if entry is not None else UNSET,
        team=(entry.team or UNSET) if entry is not None else UNSET,
        runner=entry.runner.kind if entry is not None else UNSET,
        reason=silent.reason if silent is not None else UNSET,
        since=silent.since if silent is not None else UNSET,
        last_seen=max(signs) if signs else UNSET,
        capacity=entry.concurrency if entry is not None and entry.concurrency is not None else UNSET,
    )
