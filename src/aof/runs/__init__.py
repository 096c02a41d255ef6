"""Runs: leases, reports, results, and the agents that hold them."""
