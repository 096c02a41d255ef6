"""What the events of a question make of the task's record: it is asked, perhaps by another run again, and answered.

Only some answered questions stay on record, the last ones; the log has all of them. Must not judge.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support.typed import prepare_type
from aof.core.model.events import Event
from aof.core.model.task import Question, QuestionAnswer, Task

_ANSWERED_BYTES: Final = 16_384  # of answered questions in a task's file
_replace = msgspec.structs.replace


def asked(task: Task, event: Event) -> dict[str, Any]:
    """One more question; one that is open already belongs to the run that asks it now."""
    question = msgspec.convert(event.payload["question"] | {"at": event.timestamp}, prepare_type(Question))
    if not any(one.id == question.id for one in task.questions):
        return {"questions": _kept((*task.questions, question))}
    mine = {"run_id": question.run_id, "hop": question.hop, "by": question.by}
    return {"questions": tuple(_replace(one, **mine) if one.id == question.id else one for one in task.questions)}


def answered(task: Task, event: Event) -> dict[str, Any]:
    """The question with its answer; what blocked the task without a question becomes one by being answered."""
    payload = event.payload
    questions = task.questions
    if "asked" in payload:
        questions = (*questions, msgspec.convert(payload["asked"], prepare_type(Question)))
    answer = QuestionAnswer(text=payload["text"], by=payload["by"], at=event.timestamp)
    return {
        "questions": _kept(
            tuple(_replace(one, answer=answer) if one.id == payload["question"] else one for one in questions)
        )
    }


def _kept(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """Without the oldest answered ones, where all of them together are long; the last question stays."""
    room = _ANSWERED_BYTES
    kept: list[Question] = []
    for place, one in enumerate(reversed(questions)):
        room -= len(msgspec.json.encode(one)) if one.answer is not None else 0
        if one.answer is None or room >= 0 or place == 0:
            kept.append(one)
    return tuple(reversed(kept))
