"""A claimed run in the hands of an agent, and what the agent is told."""
