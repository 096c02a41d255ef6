"""Tests of `aof.cli.terminal`."""
