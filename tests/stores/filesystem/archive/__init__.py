"""Tests of `aof.stores.filesystem.archive`."""
