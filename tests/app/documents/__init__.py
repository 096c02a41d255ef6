"""Tests of the services for documents."""
