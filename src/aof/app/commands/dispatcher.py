"""How a fabric has a command carried out: whose it is, under which policy, who is told. Must not know any surface."""

from __future__ import annotations

import msgspec

from aof._support.typed import prepare_type
from aof.app.commands import notifications, unit_of_work
from aof.app.operations.arguments import invalid
from aof.app.org.service import Organising
from aof.core.model import commands as c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.unit_of_work import Done
    from aof.core.model.task import Task
    from aof.ports.notifier import Notifier


class Carrying(Organising):
    """The part of a fabric that every operation which changes something goes through."""

    _actor: str
    _run: str | None
    _notifier: Notifier | None = None

    def _command(self, kind: type[c.OnTask], given: dict[str, Any]) -> c.OnTask:
        try:
            return msgspec.convert(given, prepare_type(kind))
        except msgspec.ValidationError as error:
            raise invalid(str(error), kind, given) from None

    def _execute(self, command: c.OnTask) -> Done:
        done = unit_of_work.execute(self.store, self._clock, self._policy_for(command), command)
        if self._notifier is not None and done.events:
            notifications.tell(self._notifier, done, self.get)
        return done


def there(done: Done) -> Task:
    """The task of a command that cannot succeed without one."""
    assert done.task is not None
    return done.task
