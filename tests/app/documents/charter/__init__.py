"""Tests of the session charter as an operation."""
