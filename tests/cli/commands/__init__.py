"""Tests of `aof.cli.commands`."""
