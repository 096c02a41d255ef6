"""Tests of the HTTP server's own parts; what it answers is tested in `tests/surfaces`."""
