"""Workflows as a service."""
