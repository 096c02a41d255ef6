"""An agent that cannot go on and says what is in the way."""

import aof

with aof.open() as fabric, fabric.own_run() as work:
    work.blocked("there is no key for the payment provider")
