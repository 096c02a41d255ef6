"""Where a process is assembled, and what runs by itself.

The service, its workers, notifications, and the connecting of agents.
"""
