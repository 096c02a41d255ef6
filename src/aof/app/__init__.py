"""Load, decide, commit: the application that stands between the surfaces and the pure core."""
