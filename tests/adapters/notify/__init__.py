"""Tests of the ways to tell people."""
