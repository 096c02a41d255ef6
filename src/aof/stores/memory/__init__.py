"""The store in memory, for users' tests."""
