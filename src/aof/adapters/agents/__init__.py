"""Connects the agents of a project: settings and notes get what it takes to find AOF, and nothing else changes."""
