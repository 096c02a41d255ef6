"""Tests of `aof.core.org`."""
