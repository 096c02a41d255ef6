"""Agent2Agent: peers give us tasks and follow them."""
