"""An agent that hands a part of its task to another one, with what it expects of it."""

from datetime import UTC, datetime

import aof

with aof.open() as fabric, fabric.own_run() as work:
    draft = {"draft": True}  # nobody begins before it is handed over
    child = fabric.create(
        "Test the refresh endpoint", agent="qa", parent_id=work.task_id, review=False, backlog=True, metadata=draft
    )
    request = {
        "protocol": "aof",
        "version": 1,
        "type": "handoff.request",
        "taskId": child.task_id,
        "fromAgent": "lead",
        "toAgent": "qa",
        "sentAt": datetime.now(UTC).isoformat(),
        "payload": {
            "taskId": child.task_id,
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
        print("handed", child.task_id, "to qa:", sent.outcome, sent.reason or "")
    fabric.edit(child.task_id, metadata={"draft": None})
    work.complete(f"designed; {child.task_id} was handed to qa")
