"""Worker processes: how they are started, supervised, read and ended."""
