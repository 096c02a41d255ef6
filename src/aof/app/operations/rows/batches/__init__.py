"""Rows of operations on many tasks at once."""
