"""AOF as a server of the Model Context Protocol: tools, resources and long-running tasks, on stdio and HTTP."""
