"""Tasks: the record, the rules for changing one, and the operations."""
