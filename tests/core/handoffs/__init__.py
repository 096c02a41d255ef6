"""Tests of `aof.core.handoffs`."""
