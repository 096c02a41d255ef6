"""Looking after a data directory, and after the tokens that open it."""
