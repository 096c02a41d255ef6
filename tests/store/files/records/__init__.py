"""Tests of `aof.store.files.records`."""
