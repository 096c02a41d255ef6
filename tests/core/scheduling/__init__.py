"""The scheduler's rules."""
