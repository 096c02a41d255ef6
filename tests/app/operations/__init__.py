"""Tests of `aof.app.operations`."""
