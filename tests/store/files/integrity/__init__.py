"""Tests of `aof.store.files.integrity`."""
