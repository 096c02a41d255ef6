"""An agent that cannot go on and says what is in the way."""

import aof

with aof.open() as fabric, fabric.own_run() as work:
    work.block("there is no key for the payment provider")
