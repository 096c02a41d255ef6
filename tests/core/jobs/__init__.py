"""Tests of `aof.core.jobs`."""
