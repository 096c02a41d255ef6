"""The life of a handoff: begun, answered, carried out, returned, passed on, ended."""
