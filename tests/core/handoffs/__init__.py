"""Tests of the rules of handoffs."""
