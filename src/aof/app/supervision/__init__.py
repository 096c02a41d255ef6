"""Services for people who supervise agents: the inbox, the agents, possible actions, work over time."""
