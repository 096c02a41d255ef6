"""The org chart: agents, rights, routing, autonomy and budgets."""
