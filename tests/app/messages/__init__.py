"""Tests of `aof.app.messages`."""
