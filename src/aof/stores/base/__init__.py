"""What every store does with events and queries."""
