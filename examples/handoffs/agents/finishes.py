"""The last agent of a chain: it looks at who had the task before, and completes it."""

import aof

with aof.open() as fabric, fabric.own_run() as work:
    chain = [f"{one.from_agent} → {one.to_agent}" for one in fabric.handoff_list(task=work.task_id)]
    work.complete(f"reviewed, after {', '.join(chain)}")
