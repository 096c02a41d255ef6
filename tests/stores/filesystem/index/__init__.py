"""Tests of `aof.stores.filesystem.index`."""
