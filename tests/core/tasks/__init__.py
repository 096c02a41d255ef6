"""Tests of `aof.core.tasks`."""
