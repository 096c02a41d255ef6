"""SESSION_CHARTER.md as text: read it, write a new one, change single lines of one."""
