"""Export and import of a data directory."""
