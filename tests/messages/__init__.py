"""Tests of `aof.messages`."""
