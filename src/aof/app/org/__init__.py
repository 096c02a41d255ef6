"""The org chart as a service."""
