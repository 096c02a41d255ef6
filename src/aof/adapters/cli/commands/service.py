"""The verb of the service."""

from __future__ import annotations

import os
from typing import Any

from aof.adapters.cli.output import Answer, Context
from aof.app.commands.own_run import refuse_in_run


def up(context: Context, values: dict[str, Any]) -> Answer:
    """`aof up`."""
    refuse_in_run("start the service", os.environ)
    code: int = context.bootstrap("serve")(context.fabric, **values)
    return Answer({"stopped": True}, lambda _screen: None, code)
