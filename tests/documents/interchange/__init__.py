"""Tests of `aof.app.jobs`."""
