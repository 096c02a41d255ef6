"""The command line: made for people by hand, stable for scripts."""
