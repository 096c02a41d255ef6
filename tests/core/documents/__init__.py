"""Tests of the rules of documents."""
