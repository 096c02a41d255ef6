"""Tests of `aof.app.runs`."""
