"""Ways to tell people what happened: a command, a file."""
