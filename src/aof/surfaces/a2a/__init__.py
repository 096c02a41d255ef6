"""Agent2Agent: peers give us tasks, and we give tasks to peers."""
