"""The jobs of a data directory as text."""
