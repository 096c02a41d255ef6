"""Tests of `aof.documents.worklog`."""
