"""The declarations of all operations, by subject; `catalogue` joins them. Must not know any surface."""
