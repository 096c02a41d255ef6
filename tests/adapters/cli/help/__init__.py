"""Tests of `aof.adapters.cli.help`."""
