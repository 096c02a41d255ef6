"""Stores keep versioned records and the log of events; they never decide who may do what."""
