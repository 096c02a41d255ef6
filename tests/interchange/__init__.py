"""Tests of `aof.interchange`."""
