"""Tests of `aof.app.workflows`."""
