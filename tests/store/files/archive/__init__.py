"""Tests of `aof.store.files.archive`."""
