"""Audit records as files for people: they follow from the log, are compared with it, and go when their time is over."""
