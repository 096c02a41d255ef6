"""Tests of `aof.store.files.io`."""
