"""Tests of `aof.core.model`."""
