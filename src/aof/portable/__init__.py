"""Tasks and events in the format of the agent task contract."""
