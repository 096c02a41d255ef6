"""Tests of `aof.cli.help`."""
