"""Tasks from and to other tools."""
