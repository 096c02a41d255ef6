"""Tests of documents that people write too."""
