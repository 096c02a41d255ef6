"""Records, commands, events, IDs, errors and settings: what all rules speak of. Must not know any rule."""
