"""Real processes, real signals, real files."""
