"""The store: what the application needs of one, and the two that there are, in files and in memory."""
