"""Tests of `aof._support`."""
