"""Tests of `aof.app.scheduler`."""
