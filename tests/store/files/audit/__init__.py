"""Tests of audit records as files."""
