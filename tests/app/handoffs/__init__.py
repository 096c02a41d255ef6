"""Tests of `aof.app.handoffs`."""
