"""An agent that uses the Python SDK: the run that it was started for is at hand, heartbeats are sent by themselves."""

import sys
from datetime import UTC, datetime

import aof

sys.stdin.read()
with aof.open() as fabric, fabric.own_run() as work:
    for handoff in fabric.handoff_list(task=work.task_id, to_agent="qa"):
        work.send(
            {
                "protocol": "aof",
                "version": 1,
                "type": "handoff.accepted",
                "taskId": work.task_id,
                "fromAgent": "qa",
                "toAgent": "dispatcher",
                "sentAt": datetime.now(UTC).isoformat(),
                "payload": {"taskId": work.task_id, "accepted": True},
            }
        )
        print("accepted what", handoff.from_agent, "handed over")
    work.progress("tested by hand", percent=80)
    work.complete("it behaves as the brief says")
