"""Tests of `aof.tasks`."""
