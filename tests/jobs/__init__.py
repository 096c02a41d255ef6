"""Tests of `aof.jobs`."""
