"""WORKLOG.md as text."""
