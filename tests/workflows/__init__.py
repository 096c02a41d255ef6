"""Tests of `aof.workflows`."""
