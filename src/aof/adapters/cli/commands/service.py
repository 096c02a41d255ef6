"""Verbs of the scheduler and of the service."""

from __future__ import annotations

import os
from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.adapters.cli.terminal.screen import Screen
from aof.app.commands.own_run import refuse_in_run


def tick(context: Context, values: dict[str, Any]) -> Answer:
    """`aof tick`."""
    ticked = context.fabric.tick(**values)

    def text(screen: Screen) -> None:
        done = [(one.task_id, one.action, one.reason) for one in ticked.actions]
        left = [(one.task_id, "-", one.reason) for one in ticked.left]
        if not done and not left:
            screen.line("nothing is unfinished")
            return
        screen.table(("TASK", "ACTION", "WHY"), done + left, whole=True)

    return Answer(ticked, text)


def up(context: Context, values: dict[str, Any]) -> Answer:
    """`aof up`."""
    refuse_in_run("start the service", os.environ)
    code: int = context.bootstrap("serve")(context.fabric, **values)
    return Answer({"stopped": True}, lambda _screen: None, code)
