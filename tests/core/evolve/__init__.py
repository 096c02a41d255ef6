"""Tests of `aof.core.evolve`."""
