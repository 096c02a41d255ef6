"""An agent that is killed in the middle of its first try, and does better in the second."""

import os
import signal

import aof

with aof.open() as fabric, fabric.own_run() as work:
    work.progress("half of it is there", percent=50)
    if work.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    work.complete("the second try went well")
