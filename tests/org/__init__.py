"""Tests of `aof.org`."""
