"""The benchmark with its comparisons: `aof.bench`, and beside it others that have to be installed for it."""
