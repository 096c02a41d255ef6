"""Tests of `aof.store.files.index`."""
