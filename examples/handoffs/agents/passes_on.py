"""An agent that does its part of a task and hands the rest to the next agent."""

import os
import sys
import time

import aof

receiver, why = sys.argv[1:]
task, run = os.environ["AOF_TASK_ID"], os.environ["AOF_RUN_ID"]
with aof.open() as fabric:
    fabric.handoff_new(type="sequential", task_id=task, to=[receiver], reason=why, segment_complete=True, run=run)
    while (lease := fabric.get(task).lease) is not None and lease.run_id == run:
        time.sleep(0.05)  # until the next agent has it
