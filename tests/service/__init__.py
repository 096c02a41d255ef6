"""Tests of what touches the world: the command line."""
