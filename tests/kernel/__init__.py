"""Tests of `aof.kernel`."""
