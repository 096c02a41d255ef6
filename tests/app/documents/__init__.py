"""Tests of `aof.app.documents`."""
