"""What a protocol message does to a task. The wire form is another room's; here a message is a command."""
