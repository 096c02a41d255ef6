"""Tests of `aof.adapters.cli.terminal`."""
