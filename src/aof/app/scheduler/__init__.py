"""The scheduler: tick, host of running agents, and what follows from a worker's end."""
