"""Tests of `aof.stores.filesystem.merge`."""
