"""One behaviour, every surface."""
