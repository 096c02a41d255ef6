"""Mirrors `src/aof/core/tasks`."""
