"""Tests of the process runner."""
