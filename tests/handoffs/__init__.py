"""Tests of `aof.handoffs`."""
