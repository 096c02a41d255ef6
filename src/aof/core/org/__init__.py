"""The org chart: agents, what each may do, and which of them gets a task. Pure: no files, clock or log."""
