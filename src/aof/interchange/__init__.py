"""Tasks from other tools, and tasks for them."""
