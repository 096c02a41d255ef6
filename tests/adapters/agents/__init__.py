"""Connecting agents."""
