"""Tests of `aof.app.tasks`."""
