"""Records, commands, events, IDs and settings: the data that all rules work on. Must not know any rule."""
