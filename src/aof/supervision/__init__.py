"""What people who supervise agents see: what needs them, who is at work, and work over time."""
