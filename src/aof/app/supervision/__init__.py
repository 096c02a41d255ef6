"""What people who supervise agents look at: what needs them, who is at work, how work flows."""
