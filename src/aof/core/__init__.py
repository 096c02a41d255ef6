"""The pure rules of AOF: no I/O, no clock, no randomness, no logging, no async."""
