"""The log: the commit point. Its lines, how its files hang together, and how it is read and written."""
