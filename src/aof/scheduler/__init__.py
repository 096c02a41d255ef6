"""The scheduler: what is due, and carrying it out."""
