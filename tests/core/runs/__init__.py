"""Tests of `aof.core.runs`."""
