"""What values may be, and how to say what is wrong with one. Must not know commands."""
