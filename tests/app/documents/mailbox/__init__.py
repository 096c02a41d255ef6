"""Tests of mail between agents."""
