"""Tests of `aof.store.files.doctor`."""
