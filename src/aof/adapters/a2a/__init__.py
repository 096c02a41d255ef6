"""Agent2Agent: peers give us tasks (`served`), and we give tasks to peers (`peer`)."""
