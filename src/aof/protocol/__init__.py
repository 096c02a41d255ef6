"""AOF/1 on the wire: how a message is recognised and read. Pure; must not know what a message does."""
