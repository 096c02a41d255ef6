"""Taking back what was done: reopening what has ended, and the inverse of a commit."""
