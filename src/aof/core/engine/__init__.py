"""The dispatch tables: which rule decides a command, and what must be loaded for it first."""
