"""Tests of `aof.portable`."""
