"""Tests of `aof.stores.filesystem.working_copy`."""
