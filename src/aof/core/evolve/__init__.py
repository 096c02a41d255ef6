"""What each event makes of a record. Must not know who may cause one."""
