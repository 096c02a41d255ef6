"""Tests of the filesystem store."""
