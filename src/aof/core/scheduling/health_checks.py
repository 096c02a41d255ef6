"""Which agents are to be checked now. Must not know how an agent is checked, nor what follows from it."""

from __future__ import annotations

from aof.core.scheduling.view import Action, View


def planned(view: View) -> list[Action]:
    """The agents under watch whose last check was a minute ago."""
    found: list[Action] = []
    for agent, watch in sorted(view.snapshot.watches.items()):
        if watch.due_at <= view.now:
            reason = f"{agent} is checked every minute; {watch.failures} checks in a row have failed"
            found.append(Action(action="health_check", task_id="", reason=reason, agent=agent))
        else:
            view.again(watch.due_at)
    return found
