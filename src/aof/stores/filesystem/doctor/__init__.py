"""Checks of a data directory, one module per kind of trouble; `diagnosis` runs them all."""
