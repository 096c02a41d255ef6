"""Tests of `aof.queries`."""
