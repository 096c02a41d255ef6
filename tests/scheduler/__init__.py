"""Tests of `aof.scheduler`."""
