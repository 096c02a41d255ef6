"""Mirrors `src/aof/core`."""
