"""Protocol messages: from text to a command, whatever channel they came by."""
