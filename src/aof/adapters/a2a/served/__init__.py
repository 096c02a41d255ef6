"""What peers see of us: the agent card, their tasks, streams and push notifications."""
