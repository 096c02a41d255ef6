"""Tests of the rules of the session charter."""
