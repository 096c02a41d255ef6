"""The portable view: everything that AOF knows, in the shapes of the agent task contract."""
