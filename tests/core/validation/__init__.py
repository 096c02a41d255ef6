"""Tests of `aof.core.validation`."""
