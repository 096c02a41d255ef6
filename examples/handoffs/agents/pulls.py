"""An agent that looks for handoffs by itself: it accepts each one, and returns what it was told to say, or dies.

What was delegated to it is its task, which it completes.
"""

import os
import sys
import time

import aof

me, says = sys.argv[1:]
with aof.open(actor=me) as fabric:
    while True:
        for handoff in fabric.handoff_list(to_agent=me, state="requested"):
            fabric.handoff_accept(handoff.id, agent=me)
            if says == "dies":
                os._exit(1)
            if handoff.type == "delegation":
                fabric.complete(handoff.task_id, agent=me, summary=f"{me} {says}")
            status = "failed" if says == "objects" else "success"
            fabric.handoff_return(handoff.id, agent=me, status=status, result=f"{me} {says}", tokens_consumed=100)
        time.sleep(0.05)
