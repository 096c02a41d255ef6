"""Tests of `aof.adapters.cli.commands`."""
