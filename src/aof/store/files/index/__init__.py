"""The index: a cache in SQLite for questions about many tasks."""
