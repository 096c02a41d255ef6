"""Runs of a task: leases, how a run ends, what happens when its worker vanishes."""
