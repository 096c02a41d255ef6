"""Tests of `aof.app.org`."""
