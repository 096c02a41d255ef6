"""Tests of `aof.stores.filesystem.doctor`."""
