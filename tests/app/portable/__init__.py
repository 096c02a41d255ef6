"""Tests of `aof.app.portable`."""
