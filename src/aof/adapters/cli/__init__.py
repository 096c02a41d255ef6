"""The command line: made for people by hand, stable for scripts. A thin adapter over the fabric."""
