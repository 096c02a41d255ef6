"""Tests of `aof.documents`."""
