"""Tests of `aof.store.files.documents`."""
