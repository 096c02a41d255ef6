"""Mirrors `src/aof/core/runs`."""
