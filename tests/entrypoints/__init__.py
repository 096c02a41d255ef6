"""Tests of `aof.entrypoints`."""
