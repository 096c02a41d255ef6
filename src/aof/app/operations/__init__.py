"""The rows of the catalogue of operations, by subject."""
