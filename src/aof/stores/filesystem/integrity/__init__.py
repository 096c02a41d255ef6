"""Is the log what its last writer left? Verification, tampering, another log."""
