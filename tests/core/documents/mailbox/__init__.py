"""Tests of the rules of mail."""
