"""The log: the commit point. Appending, flushing and reading."""
