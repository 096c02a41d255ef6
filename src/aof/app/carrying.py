"""How a fabric has a command carried out: whose it is, under which policy, who is told. Must not know any surface."""

from __future__ import annotations

from aof.app.arguments import invalid
from aof.app.organising import Organising
from aof.core.shapes import ready
from aof.lazily import Lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import msgspec

    from aof.app import execute, notifying, results
    from aof.app.execute import Done
    from aof.core.tasks import commands as c
    from aof.core.tasks.task import Task
    from aof.ports.notifier import Notifier
else:  # questions need none of these
    msgspec = Lazily("msgspec")
    execute = Lazily("aof.app.execute")
    notifying = Lazily("aof.app.notifying")
    results = Lazily("aof.app.results")


class Carrying(Organising):
    """The part of a fabric that every operation which changes something goes through."""

    _actor: str
    _run: str | None
    _notifier: Notifier | None = None

    def _command(self, kind: type[c.OnTask], given: dict[str, Any]) -> c.OnTask:
        try:
            return msgspec.convert(given, ready(kind))
        except msgspec.ValidationError as error:
            raise invalid(str(error), kind, given) from None

    def _execute(self, command: c.OnTask) -> Done:
        done = execute.execute(self.store, self._clock, self._policy_for(command), command)
        if self._notifier is not None and done.events:
            notifying.tell(self._notifier, done, self.get)
        return done


def there(done: Done) -> Task:
    """The task of a command that cannot succeed without one."""
    assert done.task is not None
    return done.task
