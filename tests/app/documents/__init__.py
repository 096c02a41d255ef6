"""Tests of the services of documents."""
