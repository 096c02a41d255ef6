"""Verbs for agents that work together."""
