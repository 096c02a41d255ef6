"""Gated workflows: templates, conditions, the hops that a task passes through, and how they go on."""
