"""Tests of `aof.core.engine`."""
