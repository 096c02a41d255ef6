"""Tests of documents that git has merged."""
