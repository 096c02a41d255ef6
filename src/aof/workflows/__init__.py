"""Gated workflows: templates, hops, outcomes."""
