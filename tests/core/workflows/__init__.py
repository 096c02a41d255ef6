"""Gated workflows."""
