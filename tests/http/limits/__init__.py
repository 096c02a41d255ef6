"""Tests of `aof.http.limits`."""
