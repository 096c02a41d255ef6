"""What the command line can say, as data."""
