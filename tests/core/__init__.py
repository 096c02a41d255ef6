"""Tests of `aof.core`."""
