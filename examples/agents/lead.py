"""An agent that hands a part of its task to another one, and goes on when that part has ended.

Its first run ends by a release that waits for the child; the next one begins when the child has ended, and sees its
result. The key makes creation repeatable: however often the agent is started, there is one child.
"""

from datetime import UTC, datetime

import aof

with aof.open() as fabric, fabric.own_run() as work:
    title, key = "Test the refresh endpoint", f"tests of {work.task_id}"
    child = fabric.create(title, agent="qa", parent_id=work.task_id, review=False, backlog=True, key=key).task_id
    if fabric.get(child).status == "backlog":  # nobody begins it before it is handed over
        request = {
            "protocol": "aof",
            "version": 1,
            "type": "handoff.request",
            "taskId": child,
            "fromAgent": "lead",
            "toAgent": "qa",
            "sentAt": datetime.now(UTC).isoformat(),
            "payload": {
                "taskId": child,
                "parentTaskId": work.task_id,
                "fromAgent": "lead",
                "toAgent": "qa",
                "acceptanceCriteria": ["an expired token is refused"],
                "expectedOutputs": ["outputs/report.md"],
                "contextRefs": [],
                "constraints": ["no new dependencies"],
            },
        }
        for sent in work.send(request):
            print("handed", child, "to qa:", sent.outcome, sent.reason or "")
        fabric.update(child, status="ready")
    status = fabric.get(child).status
    if status == "done":
        work.complete(f"designed; qa says: {fabric.show(child)['result']['notes']}")
    elif status in ("cancelled", "deadletter"):
        work.block(f"{child} is {status}")
    else:
        work.release(wait_for_children=True)
