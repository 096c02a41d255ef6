"""Looking after a data directory: sync, doctor, merge, tokens."""
