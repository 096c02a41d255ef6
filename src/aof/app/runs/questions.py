"""Questions of running agents: asking, waiting for the answer under a lease that the wait renews, and answering.

Must not know any surface; servers that wait for many callers at once do it in `async_bridge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from aof.app.commands.dispatcher import require_task
from aof.app.operations import results
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.runs import NoQuestion
from aof.core.model import commands as c
from aof.core.model.workflow import leases
from aof.core.runs.lease import BEATS_PER_LEASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.operations.results import Answered, AskedQuestion
    from aof.core.model.task import Question, Task

_LOOK_AGAIN = 30.0  # seconds: the longest that a wait goes without a sign of life
_LEFT = "the run has ended; the answer makes the task ready again, and a new claim goes on with it"


class QuestionService:
    """Asks people on behalf of agents, and passes their answers on."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def ask(
        self,
        task_id: str,
        text: str | None = None,
        *,
        choices: Sequence[str] = (),
        question: str | None = None,
        wait: float = 0.0,
        leave: bool = False,
        run: str | None = None,
        agent: str | None = None,
        key: str | None = None,
    ) -> AskedQuestion:
        """Ask a person about the task that you run, and `wait` so many seconds for the answer.

        The lease is renewed meanwhile. With `question` instead of a text, ask after the answer to an earlier question.
        With `leave` the run ends; the answer makes the task ready, and the next run is told.
        """
        if (text is None) == (question is None):
            raise InvalidInput(
                "give either a text to ask, or the question whose answer you wait for",
                "ask something",
                Call("ask", {"task_id": task_id, "text": "…"}),
            )
        if not wait >= 0 or (wait and leave):
            raise InvalidInput(
                "'leave' ends the run, so it cannot wait" if leave else f"waiting for {wait} seconds is not possible",
                "give a number of seconds from 0 up, without 'leave'",
                Call("ask", {"task_id": task_id, "text": "…", "wait": 60}),
            )
        who = {"run": run, "agent": agent}
        if text is None:
            asked = self._renewed(task_id, str(question), who)
        else:
            done = self._dispatcher.on_task(
                c.Ask, task_id, **who, key=key, text=text, choices=tuple(choices), leave=leave
            )
            task = require_task(done)
            asked = _asked(task, _by_text(task, text))
        return self._patiently(asked, who, wait) if wait else asked

    def _patiently(self, asked: AskedQuestion, who: dict[str, str | None], wait: float) -> AskedQuestion:
        """Wait for the answer; each poll is a heartbeat, and raises an error once the run has ended."""
        store, clock = self._environment.store, self._environment.clock
        deadline = clock.monotonic() + wait
        beat = clock.monotonic() + beat_interval(self._environment.lookup.get(asked.task_id))
        while not asked.answered:
            seen = store.head()
            left = min(deadline, beat) - clock.monotonic()
            if left > 0 and store.wait(seen, left):
                task = self._environment.lookup.get(asked.task_id)
                asked = _asked(task, _by_id(task, asked.question))
                continue
            if clock.monotonic() >= deadline:
                break
            asked = self._renewed(asked.task_id, asked.question, who)
            beat = clock.monotonic() + beat_interval(self._environment.lookup.get(asked.task_id))
        return asked

    def _renewed(self, task_id: str, question: str, who: dict[str, str | None]) -> AskedQuestion:
        """The question as it is now; polling is a heartbeat of the run that waits."""
        done = self._dispatcher.on_task(c.RecordHeartbeat, task_id, **who)
        task = require_task(done)
        return _asked(task, _by_id(task, question))

    def answer(
        self,
        task_id: str,
        text: str,
        *,
        question: str | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Answered:
        """Answer an agent's question, once; a task that it blocked is ready again."""
        done = self._dispatcher.on_task(c.AnswerQuestion, task_id, actor=actor, key=key, text=text, question=question)
        task = require_task(done)
        named = next((event.payload for event in done.events if event.type == "task.question.answered"), None)
        known = _by_id(task, named["question"]) if named is not None else _last_answered(task, question)
        suggested = {one.strip().casefold() for one in known.choices}
        return results.Answered(
            task_id=task.id,
            status=task.status,
            question=known.id,
            asked_by=known.by,
            none_of=known.choices if suggested and text.strip().casefold() not in suggested else None,
        )


def beat_interval(task: Task) -> float:
    """Seconds between two signs of life."""
    shortest = min((lease.ttl_ms for lease in leases(task)), default=0) / 1000 / BEATS_PER_LEASE
    return min(shortest or _LOOK_AGAIN, _LOOK_AGAIN)


def _by_id(task: Task, question: str) -> Question:
    found = next((one for one in task.questions if one.id == question), None)
    if found is None:
        raise _unknown(task, question)
    return found


def _by_text(task: Task, text: str) -> Question:
    """The question that was just asked: the last one with the same text."""
    said = text.strip()
    found = next((one for one in reversed(task.questions) if one.text == said), None)
    if found is None:  # a request with a key that was made long ago
        raise _unknown(task, said)
    return found


def _last_answered(task: Task, question: str | None) -> Question:
    """The question of a request that is repeated."""
    if question is not None:
        return _by_id(task, question)
    found = next((one for one in reversed(task.questions) if one.answer is not None), None)
    if found is None:
        raise _unknown(task, "")
    return found


def _unknown(task: Task, question: str) -> AofError:
    return NoQuestion(
        f"{task.id} has no question {question[:40]!r}", "see what was asked", Call("show", {"task_id": task.id})
    )


def _asked(task: Task, question: Question) -> AskedQuestion:
    given = question.answer
    left = all(lease.run_id != question.run_id for lease in leases(task))
    open_now = (
        _LEFT if left else f"not answered yet: call again with question {question.id} and wait, or go on meanwhile"
    )
    return results.AskedQuestion(
        task_id=task.id,
        status=task.status,
        question=question.id,
        answered=given is not None,
        answer=results.GivenAnswer(text=given.text, by=given.by, at=given.at) if given is not None else None,
        note=open_now if given is None else None,
    )
