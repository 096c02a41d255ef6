"""Handoffs that wait for an answer."""
