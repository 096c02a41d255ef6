"""Tests of `aof.store.files.working_copy`."""
