"""The dispatch tables: which rule decides a command or a status change, and what must be loaded for it first."""
