"""Tests of `aof.stores.filesystem.records`."""
