"""Handoffs between agents, and what the agents of a workflow share."""
