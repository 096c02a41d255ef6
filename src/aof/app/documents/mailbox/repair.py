"""What the doctor says of the mailbox: tables that do not say what the cards say, which can be written again.

Must not know what else a doctor looks at.
"""

from __future__ import annotations

from aof.app.commands import unit_of_work
from aof.app.documents import reading
from aof.app.documents.mailbox import commands
from aof.core.documents.mailbox import facts
from aof.core.model.ids import OURSELVES
from aof.documents.mailbox import check
from aof.ports import store as ports
from aof.ports.working_copy import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment

_TABLES = frozenset({"inbox_unread", "inbox_oldest", "inbox_due", "inbox_missing", "queue_missing"})
_FIX = "'aof doctor --fix' writes the tables again from the cards"


def found(here: Environment) -> tuple[Problem, ...]:
    """The tables that do not follow from the cards."""
    with here.store.unit(ports.Scope()) as unit:
        text = unit.document(facts.PATH)
    wrong = check.problems(text, reading.policy_of(here)) if text else []
    return tuple(Problem(one.code, facts.PATH, one.detail, _FIX) for one in wrong if one.code in _TABLES)


def settle(here: Environment) -> None:
    """Write them again from the cards."""
    policy = reading.policy_of(here)
    with here.store.unit(ports.Scope(names=commands.LOCK)) as unit:
        unit_of_work.follow(unit, commands.LOCK, policy)
        unit.commit((facts.settled(),), actor=OURSELVES, agent=None, now=here.clock.now())
        unit_of_work.follow(unit, commands.LOCK, policy)
