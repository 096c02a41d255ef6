"""Tests of `aof.stores.filesystem.log`."""
