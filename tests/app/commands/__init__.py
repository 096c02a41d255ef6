"""Tests of `aof.app.commands`."""
