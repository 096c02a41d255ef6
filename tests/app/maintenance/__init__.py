"""Tests of `aof.app.maintenance`."""
