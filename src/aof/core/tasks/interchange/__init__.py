"""Tasks that come from other tools."""
