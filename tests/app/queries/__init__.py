"""Tests of `aof.app.queries`."""
