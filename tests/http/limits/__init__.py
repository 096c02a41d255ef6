"""Tests of the limits of `aof.surfaces.http`."""
