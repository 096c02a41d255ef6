"""Suites and clients that others have written. `make test-interop` runs them."""
