"""Tests of `aof.store.files.merge`."""
