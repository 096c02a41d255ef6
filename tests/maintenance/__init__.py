"""Tests of `aof.maintenance`."""
