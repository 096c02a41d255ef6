"""Where a process puts its parts together."""
