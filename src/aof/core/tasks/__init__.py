"""What a task is, which commands change it, and what follows from each."""
