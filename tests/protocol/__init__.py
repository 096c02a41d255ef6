"""The wire form of AOF/1."""
