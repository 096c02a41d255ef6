"""Tests of `aof.stores.filesystem.integrity`."""
