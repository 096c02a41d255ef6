"""Tests of `aof.store.files.log`."""
