"""Tests of `aof.api`."""
