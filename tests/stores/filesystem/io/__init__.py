"""Tests of `aof.stores.filesystem.io`."""
