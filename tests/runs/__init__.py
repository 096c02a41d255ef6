"""Tests of `aof.runs`."""
