"""Help, completion, reference and suggestions, from the same tables that the parser reads."""
