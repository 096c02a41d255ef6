"""Tests of `aof.adapters.http.limits`."""
