"""Tests of `aof.stores.filesystem.documents`."""
