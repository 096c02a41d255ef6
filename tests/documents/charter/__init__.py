"""Tests of the session charter as text."""
